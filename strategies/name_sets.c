#include "strategies/name_sets.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static enum dl_status read_name(struct dl_json item, const char *const *known, size_t n, uint32_t *set,
                                struct dl_error *err)
{
    const char *const name = json_string_value(item.value);
    char hint[DL_HINT];
    if (!name) return dl_wrong_type(item, "a name, as a string", err);
    for (size_t i = 0; i < n; i++)
        if (strcmp(known[i], name) == 0) {
            const uint32_t one = (uint32_t)1 << i;
            if (*set & one) return dl_fail(err, DL_RANGE, item.where, "'%s' is named twice", name);
            *set |= one;
            return DL_OK;
        }
    return dl_fail(err, DL_RANGE, item.where, "no such name: '%.60s'%s", name, dl_hint(name, known, n, hint));
}

enum dl_status dl_name_set_read(struct dl_json list, const char *const *known, size_t n, uint32_t *set,
                                struct dl_error *err)
{
    struct dl_arena *const places = dl_arena_new();
    enum dl_status status = DL_OK;
    assert(n <= DL_MOST_NAMES);
    *set = 0;
    for (size_t i = 0; !status && i < json_array_size(list.value); i++)
        status = read_name(dl_json_element(list, i, places), known, n, set, err);
    dl_arena_free(places);
    return status;
}

void dl_name_set_print(uint32_t set, const char *const *known, size_t n, char *out, size_t room)
{
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < n && used < room; i++)
        if (set >> i & 1) used += (size_t)snprintf(out + used, room - used, "%s%s", used ? ", " : "", known[i]);
}
