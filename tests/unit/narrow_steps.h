/* narrow_steps.h - a small model on a device that has fp8, mxfp8 and nvfp4, and software that quantises. */
#ifndef DL_TESTS_NARROW_STEPS_H
#define DL_TESTS_NARROW_STEPS_H

#include "tests/unit/allocated.h"
#include "tests/unit/divided_step.h"

#define TOKENS 64 /* 2 samples of 32 */
#define HIDDEN 64
#define MODEL(more)                                                                                                    \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':16,'seq':32,"  \
    "'vocab':512,'bias':false" more "}"
#define BATCH(precision) "'global_batch':2,'microbatch':2,'precision':'" precision "'"
#define FP8_DEVICE                                                                                                     \
    "{'schema':'dlsim/device/1','source':'a test','model':'roofline','peak_flop_per_s':{'fp32':1e12,'bf16':1e12,"      \
    "'fp8':2e12,'mxfp8':4e12,'nvfp4':8e12},'memory_bytes':1e18,'memory_bytes_per_s':1e15,'launch_s':0,'figures':{"     \
    "'compute_fraction':1,'bandwidth_fraction':1}}"
#define SOFTWARE(keys) "{'schema':'dlsim/software/1','source':'a test','attention':'flash'" keys "}"
#define OPERANDS_IN(precision, keys) ",'operands':[{'precision':'" precision "','moves':3,'launches':2" keys "}]"
#define OPERANDS(keys) OPERANDS_IN("fp8", keys)

static const double exactly = 1e-9, memory_bytes_per_s = 1e15; /* that of the device */

static inline void open_narrow(struct dl_session *t, const char *software, const char *head, const char *workload)
{
    open_step(t, &(struct step){.system = FAST_SYSTEM,
                                .device = FP8_DEVICE,
                                .software = software,
                                .workload = workload,
                                .head = head,
                                .stack = "{'name':'data'}"});
}

#endif
