/* eager_attention.c - what attention takes longer where Hugging Face's decoders write it out, against PyTorch on an
 * H200 (validation/measured/eager_attention.json). */
#include "tests/unit/divided_step.h"
#include "tests/unit/measured_steps.h"

enum { ATTENTION, FORWARD, BOTH, PEAK };
enum { FLASH_ROW, WRITTEN_OUT_ROW };

struct step_of {
    double forward_s, both_s, peak_bytes;
};

static struct step_of predicted(const char *software)
{
    struct dl_session t;
    open_step(&t, &(struct step){.system = FAST_SYSTEM,
                                 .device = "h200",
                                 .software = software,
                                 .workload = "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer',"
                                             "'layers':2,'hidden':4096,'ffn':11008,'heads':32,'seq':4096,'vocab':512,"
                                             "'norm':'rmsnorm','activation':'swiglu','positions':'rotary',"
                                             "'projections':'apart','bias':false,'dropout':false}",
                                 .head = "'global_batch':2,'microbatch':2,'precision':'bf16'",
                                 .stack = ""});
    const double forward_s = kernels_s(&t, DL_ITEM_F, "");
    const struct step_of is = {forward_s, forward_s + kernels_s(&t, DL_ITEM_B, ""), t.memory[0].peak};
    dl_session_close(&t);
    return is;
}

static double more(int column)
{
    const json_t *const rows = json_object_get(measured.value, "rows");
    return number(json_array_get(rows, WRITTEN_OUT_ROW), column) - number(json_array_get(rows, FLASH_ROW), column);
}

START_TEST(attention_that_is_written_out_takes_longer_as_measured)
{
    const struct step_of flash = predicted("fsdp"), written_out = predicted("fsdp-2023");
    open_measured_file("eager_attention");
    check_close("forward", written_out.forward_s - flash.forward_s, more(FORWARD), 0.05);
    check_close("both", written_out.both_s - flash.both_s, more(BOTH), 0.03);
    check_close("bytes", written_out.peak_bytes - flash.peak_bytes, more(PEAK), 0.03);
    close_measured();
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("eager_attention");
    tcase_add_test(tests, attention_that_is_written_out_takes_longer_as_measured);
    Suite *const suite = suite_create("eager_attention");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
