/* schedules.h - every schedule by name, for the table in schedules.c, and what their generators share. */
#ifndef DL_STRATEGIES_SCHEDULES_SCHEDULES_H
#define DL_STRATEGIES_SCHEDULES_SCHEDULES_H

#include "strategies/schedule.h"

extern const struct dl_schedule_kind dl_schedule_gpipe, dl_schedule_1f1b, dl_schedule_interleaved;
extern const struct dl_schedule_kind dl_schedule_zb_h1, dl_schedule_zb_2p, dl_schedule_zbv, dl_schedule_dualpipe;
extern const struct dl_schedule_kind dl_schedule_v_half, dl_schedule_v_min, dl_schedule_breadth_first;

/* Room for all items, and position = chunk x stages + stage: the model goes round the stages once per chunk. */
void dl_schedule_init(struct dl_schedule *s, const struct dl_schedule_request *request, bool splits_backward,
                      struct dl_arena *arena);

/* Say that the stage holds the position of the path as its chunk. */
void dl_schedule_place(struct dl_schedule *s, uint32_t path, uint32_t position, uint32_t stage, uint32_t chunk);

/* Add an item at the end of the stage's order. */
void dl_schedule_append(struct dl_schedule *s, uint32_t stage, enum dl_item_kind kind, uint32_t micro, uint32_t chunk);

/* Refuse a request: the key ("ways", "chunks", "global_batch"), what is needed, what was found and the nearest valid
 * value. */
enum dl_status dl_schedule_refuse(const struct dl_schedule_request *request, const char *key, struct dl_error *err,
                                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* F = B = W, and transfers are free: the case that formulas are given for. */
bool dl_schedule_times_are_equal(const struct dl_schedule_request *request);

#endif
