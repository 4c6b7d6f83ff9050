/* position_records.h - positions whose layers are all alike, in turn, are lowered once: the others share its templates,
 * but for the layers that their memory names.
 *
 * The rule to remember: a position is noted only if each of its layers is (layer_records.h). */
#ifndef DL_STRATEGIES_POSITION_RECORDS_H
#define DL_STRATEGIES_POSITION_RECORDS_H

#include "strategies/sink.h"

struct dl_position_keys;

/* What its templates depend on; NULL: it is like no other. Before it is lowered. */
const struct dl_position_keys *dl_position_note_begin(struct dl_sink *s, const struct dl_position *p, bool splits);
/* Whether one that is alike was noted; then its templates are like those. */
bool dl_position_write_again(struct dl_sink *s, const struct dl_position_keys *keys, struct dl_position *p);
/* What is drawn beyond layers, and by a layer, as long as the records of layers are there. */
void dl_position_note_draw(struct dl_sink *s, const struct dl_sink_draw *draw);
void dl_position_note_draws(struct dl_sink *s, const struct dl_sink_draw *draws, size_t n);
void dl_position_note_end(struct dl_sink *s, const struct dl_position_keys *keys, const struct dl_position *p);

#endif
