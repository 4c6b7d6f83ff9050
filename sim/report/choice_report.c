#include "sim/report/choice_report.h"

#include <stdio.h>

#include "sim/report/units.h"

json_t *dl_faster_json(const struct dl_faster *faster)
{
    if (!faster->algorithm) return json_null();
    return dl_json_pack("{s:s, s:s, s:f}", "algorithm", faster->algorithm, "protocol", faster->protocol, "time_s",
                        faster->time_s);
}

json_t *dl_tuner_note_json(const struct dl_tuner_note *note)
{
    if (!note->faster.algorithm) return json_null();
    return dl_json_pack("{s:s, s:f, s:I, s:s, s:s, s:f, s:o}", "op", note->op, "bytes", note->bytes, "devices",
                        (json_int_t)note->n_ranks, "algorithm", note->algorithm, "protocol", note->protocol, "time_s",
                        note->time_s, "faster", dl_faster_json(&note->faster));
}

void dl_tuner_note_print(const struct dl_tuner_note *note, const char *tuner)
{
    char bytes[DL_QUANTITY], ranks[DL_QUANTITY], time[DL_QUANTITY], faster[DL_QUANTITY];
    if (!note->faster.algorithm) return;
    printf("  tuner          %s's takes %s, %s (%s) for %s of %s over %s devices; %s, %s is estimated at %s\n", tuner,
           note->algorithm, note->protocol, dl_format_seconds(note->time_s, time), note->op,
           dl_format_bytes(note->bytes, bytes), dl_format_count(note->n_ranks, ranks), note->faster.algorithm,
           note->faster.protocol, dl_format_seconds(note->faster.time_s, faster));
}
