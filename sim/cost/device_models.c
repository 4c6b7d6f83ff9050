/* device_models.c - the only list of device models; a new one is one file and one line here. */
#include "sim/cost/device_models.h"

static const struct dl_device_model *const models[] = {&dl_device_cpu,      &dl_device_dataflow, &dl_device_gpu,
                                                       &dl_device_roofline, &dl_device_systolic, &dl_device_wafer};

size_t dl_device_model_count(void) { return DL_COUNT(models); }

const struct dl_device_model *dl_device_model_get(size_t index) { return models[index]; }
