#include "sim/collective/payload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double value_bytes = DL_PAYLOAD_VALUE_BYTES;
/* QSGD (Alistarh et al., NeurIPS 2017), section 5: one fp32 scale for each bucket of 512 values. */
static const double bucket_values = 512, scale_bytes = 4;
/* SparCML (Renggli et al., SC19), section 5: a 4-byte index beside each value. */
static const double index_bytes = 4;

static const char option[] = "--payload";

static enum dl_status parse_number(const char *text, const char *what, double *out, struct dl_error *err)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end) return dl_fail(err, DL_SYNTAX, option, "%s must be a number, got '%.40s'", what, text);
    return DL_OK;
}

static enum dl_status parse_bits(const char *text, struct dl_payload *out, struct dl_error *err)
{
    out->kind = DL_QUANTIZED;
    if (parse_number(text, "the bits of quantized:BITS", &out->bits, err)) return err->status;
    if (!(out->bits >= 1 && out->bits <= 32) || out->bits != floor(out->bits))
        return dl_fail(err, DL_RANGE, option, "quantized:BITS needs a whole number from 1 to 32, got '%.40s'", text);
    return DL_OK;
}

static enum dl_status parse_ratio(const char *text, struct dl_payload *out, struct dl_error *err)
{
    out->kind = DL_TOPK;
    if (parse_number(text, "the ratio of topk:RATIO", &out->ratio, err)) return err->status;
    if (!(out->ratio > 0 && out->ratio <= 1)) /* so that NaN fails too */
        return dl_fail(err, DL_RANGE, option, "topk:RATIO needs a ratio above 0 and at most 1, got '%.40s'", text);
    return DL_OK;
}

static const struct {
    const char *name;
    enum dl_status (*parse)(const char *argument, struct dl_payload *out, struct dl_error *err); /* NULL: it has none */
} kinds[] = {{"dense", NULL}, {"quantized:", parse_bits}, {"topk:", parse_ratio}};

enum dl_status dl_payload_parse(const char *text, struct dl_payload *out, struct dl_error *err)
{
    *out = (struct dl_payload){.kind = DL_DENSE};
    for (size_t i = 0; i < DL_COUNT(kinds); i++) {
        const size_t length = strlen(kinds[i].name);
        if (strncmp(text, kinds[i].name, length)) continue;
        if (kinds[i].parse) return kinds[i].parse(text + length, out, err);
        if (!text[length]) return DL_OK;
    }
    return dl_fail(err, DL_SYNTAX, option, "must be dense, quantized:BITS or topk:RATIO, got '%.40s'", text);
}

/* Ranks pick independently of each other: a value is in the union of m picks unless all m passed it over. */
static double union_ratio(double ratio, uint32_t merged) { return 1 - pow(1 - ratio, merged); }

double dl_payload_bytes(const struct dl_payload *payload, double dense_bytes, uint32_t merged)
{
    const double n_values = dense_bytes / value_bytes;
    switch (payload->kind) {
    case DL_QUANTIZED: return n_values * payload->bits / 8 + n_values / bucket_values * scale_bytes;
    case DL_TOPK:
        return fmin(dense_bytes, n_values * union_ratio(payload->ratio, merged) * (value_bytes + index_bytes));
    case DL_DENSE: break;
    }
    return dense_bytes;
}

bool dl_payload_is_packed(const struct dl_payload *payload) { return payload->kind != DL_DENSE; }

bool dl_payload_packs(const struct dl_payload *payload)
{
    return dl_payload_is_packed(payload) && !payload->has_kernels;
}
