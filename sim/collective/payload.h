/* payload.h - how values travel: dense, quantised to fewer bits, or sparse.
 *
 * Bytes of a message are asked for with the number of ranks whose values it merges: a sparse message grows with it,
 * since the union of what they picked grows, until it is cheaper to send it dense (SparCML, SC19). */
#ifndef DL_COLLECTIVE_PAYLOAD_H
#define DL_COLLECTIVE_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/core/error.h"
#include "sim/program/payload.h"

/* Dense bytes of one value: values are fp32, as in the papers that these payloads come from. */
#define DL_PAYLOAD_VALUE_BYTES 4.0

/* "dense", "quantized:4", "topk:0.01". */
enum dl_status dl_payload_parse(const char *text, struct dl_payload *out, struct dl_error *err);

/* Bytes on the wire for dense_bytes of values that merge the values of `merged` ranks. */
double dl_payload_bytes(const struct dl_payload *payload, double dense_bytes, uint32_t merged);

bool dl_payload_is_packed(const struct dl_payload *payload);

/* Whether the transport packs a message before it is sent and unpacks it when it comes. */
bool dl_payload_packs(const struct dl_payload *payload);

#endif
