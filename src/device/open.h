/* Opens the devices of a set: those given by name, each with its options, or all that are found. */
#ifndef CLEAVE_DEVICE_OPEN_H
#define CLEAVE_DEVICE_OPEN_H

#include "device/device.h"

/* Opens options->list in `devices`, which must be empty. If this fails, devices that were already opened stay in `devices`, and
 * clv_devices_close() closes them. */
clv_status clv__devices_open_all(clv_devices *devices, const clv_devices_options *options, clv_error *error);

#endif
