/* list_command.c - every name that dlsim knows: one table, one line a list (lists.c). */
#include <stdio.h>
#include <string.h>

#include "sim/app/commands.h"
#include "sim/app/lists.h"
#include "sim/app/options.h"

static const struct {
    const char *name;
    void (*print)(void);
} lists[] = {
    {"topologies", dl_list_topologies}, {"devices", dl_list_devices},         {"transports", dl_list_transports},
    {"workloads", dl_list_workloads},   {"strategies", dl_list_strategies},   {"schedules", dl_list_schedules},
    {"software", dl_list_software},     {"collectives", dl_list_collectives}, {"engines", dl_list_engines},
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

static int run(int argc, char **argv, struct dl_error *err)
{
    struct dl_texts wanted = {0};
    if (dl_read_options(argc, argv, NULL, 0, NULL, &wanted, err)) return 2;
    for (size_t i = 0; i < wanted.n && !err->status; i++)
        if (find_list(wanted.items[i]) == DL_COUNT(lists)) unknown_list(wanted.items[i], err);
    for (size_t i = 0; i < wanted.n && !err->status; i++) lists[find_list(wanted.items[i])].print();
    for (size_t i = 0; !wanted.n && i < DL_COUNT(lists); i++) {
        printf("%s\n", lists[i].name);
        lists[i].print();
    }
    return 0;
}

const struct dl_command dl_command_list = {
    .name = "list",
    .doc = "every name with its options and ranges",
    .usage = "list [topologies|devices|transports|workloads|strategies|schedules|software|collectives|engines]",
    .run = run,
};
