/* list_command.c - every name that dlsim knows: one table, one line a list (lists.c). */
#include <stdio.h>
#include <string.h>

#include "sim/app/commands.h"
#include "sim/app/lists.h"
#include "sim/app/options.h"
#include "sim/report/asked.h"

static const struct {
    const char *name;
    void (*print)(void);
} lists[] = {
    {"topologies", dl_list_topologies}, {"devices", dl_list_devices},         {"transports", dl_list_transports},
    {"workloads", dl_list_workloads},   {"strategies", dl_list_strategies},   {"schedules", dl_list_schedules},
    {"software", dl_list_software},     {"collectives", dl_list_collectives}, {"engines", dl_list_engines},
};

struct request {
    const char *json;
};

static const struct dl_option options[] = {
    {"json", DL_OPT_OUTPUT, offsetof(struct request, json), false, 0, 0, NULL,
     "the names for programs too; - is standard output, in place of the text"},
};

static enum dl_status unknown_list(const char *name, struct dl_error *err)
{
    const char *names[DL_COUNT(lists)];
    char nearest[DL_HINT], all[DL_HINT];
    for (size_t i = 0; i < DL_COUNT(lists); i++) names[i] = lists[i].name;
    return dl_fail(err, DL_NOT_FOUND, name, "no such list%s (%s)", dl_suggestion(name, names, DL_COUNT(names), nearest),
                   dl_joined(names, DL_COUNT(names), all));
}

/* DL_COUNT(lists): there is none of that name. */
static size_t find_list(const char *name)
{
    size_t i = 0;
    while (i < DL_COUNT(lists) && strcmp(name, lists[i].name)) i++;
    return i;
}

static void print(const struct dl_texts *wanted)
{
    for (size_t i = 0; i < wanted->n; i++) lists[find_list(wanted->items[i])].print();
    for (size_t i = 0; !wanted->n && i < DL_COUNT(lists); i++) {
        printf("%s\n", lists[i].name);
        lists[i].print();
    }
}

static struct dl_asked what_was_asked(const json_t *names)
{
    struct dl_asked asked = {.command = "list"};
    struct dl_fingerprint f;
    size_t i;
    json_t *name;
    dl_fingerprint_begin(&f);
    json_array_foreach(names, i, name)
    {
        dl_fingerprint_json(&f, "name", json_object_get(name, "name"));
        dl_fingerprint_json(&f, "kind", json_object_get(name, "kind"));
        dl_fingerprint_json(&f, "doc", json_object_get(name, "doc"));
    }
    dl_fingerprint_end(&f, asked.sha256);
    return asked;
}

static enum dl_status write(const char *path, const struct dl_texts *wanted, struct dl_error *err)
{
    json_t *const names = json_array();
    for (size_t i = 0; i < wanted->n; i++) dl_list_json(wanted->items[i], names);
    for (size_t i = 0; !wanted->n && i < DL_COUNT(lists); i++) dl_list_json(lists[i].name, names);
    const struct dl_asked asked = what_was_asked(names);
    return dl_write_json(path, dl_answer(&asked, dl_json_pack("{s:o}", "names", names)), err);
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {0};
    struct dl_texts wanted = {0};
    if (dl_read_options(argc, argv, options, DL_COUNT(options), &q, &wanted, err)) return 2;
    for (size_t i = 0; i < wanted.n && !err->status; i++)
        if (find_list(wanted.items[i]) == DL_COUNT(lists)) unknown_list(wanted.items[i], err);
    if (!err->status && q.json) write(q.json, &wanted, err);
    if (!err->status && dl_tells_text(q.json)) print(&wanted);
    return 0;
}

const struct dl_command dl_command_list = {
    .name = "list",
    .doc = "every name with its options and ranges",
    .usage = "list [topologies|devices|transports|workloads|strategies|schedules|software|collectives|engines]... "
             "[--json FILE|-]",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
