/* Opens the devices of a set: those given by name, each with its options, or all that are found. */
#ifndef CLEAVE_DEVICE_OPEN_H
#define CLEAVE_DEVICE_OPEN_H

#include "device/device.h"

/* Opens options->list in `devices`, which must be empty. Devices opened before a failure are closed with the set. */
clv_status clv__devices_open_all(clv_devices *devices, const clv_devices_options *options, clv_error *error);

#endif
