/* Which devices a set has: by name, with the options that are meant for each, or all that are found. */
#ifndef CLEAVE_DEVICE_OPEN_H
#define CLEAVE_DEVICE_OPEN_H

#include "device/device.h"

/* Opens options->list in `devices`, which has none. What is open after a failure is closed with the set. */
clv_status clv__devices_open_all(clv_devices *devices, const clv_devices_options *options, clv_error *error);

#endif
