/* device_models.h - the device models, one file each. */
#ifndef DL_COST_DEVICE_MODELS_H
#define DL_COST_DEVICE_MODELS_H

#include "sim/cost/device.h"

extern const struct dl_device_model dl_device_cpu;
extern const struct dl_device_model dl_device_dataflow;
extern const struct dl_device_model dl_device_gpu;
extern const struct dl_device_model dl_device_roofline;
extern const struct dl_device_model dl_device_systolic;
extern const struct dl_device_model dl_device_wafer;

#endif
