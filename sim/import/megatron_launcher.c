/* megatron_launcher.c - how many devices a launch command starts processes on, and which program. */
#include <stdlib.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/import/megatron.h"

/* Numbers of torchrun, Slurm and mpirun. */
struct counts {
    int64_t per_node, torch_nodes, nodes, tasks, tasks_per_node;
};
static const struct {
    const char *option;
    size_t offset;
} options[] = {
    {"--nproc_per_node", offsetof(struct counts, per_node)},
    {"--nproc-per-node", offsetof(struct counts, per_node)},
    {"--nnodes", offsetof(struct counts, torch_nodes)},
    {"--nodes", offsetof(struct counts, nodes)},
    {"-N", offsetof(struct counts, nodes)},
    {"--ntasks", offsetof(struct counts, tasks)},
    {"-n", offsetof(struct counts, tasks)},
    {"-np", offsetof(struct counts, tasks)},
    {"--ntasks-per-node", offsetof(struct counts, tasks_per_node)},
};

static void read_option(struct counts *counts, const char *word, const char *next)
{
    for (size_t i = 0; i < DL_COUNT(options); i++) {
        const size_t n = strlen(options[i].option);
        if (strncmp(word, options[i].option, n) || (word[n] && word[n] != '=')) continue;
        const char *const value = word[n] ? word + n + 1 : next;
        char *end = NULL;
        const long long count = value ? strtoll(value, &end, 10) : 0;
        const bool is_count = value && end != value && !*end && count > 0 && count < INT32_MAX;
        *(int64_t *)((char *)counts + options[i].offset) = is_count ? count : 0;
    }
}

static int64_t devices_of(const struct counts *c)
{
    if (c->per_node) return c->per_node * (c->torch_nodes ? c->torch_nodes : 1);
    if (c->tasks) return c->tasks;
    return c->nodes * c->tasks_per_node;
}

/* Programs of Megatron-LM; others are read as that of GPT, and listed. */
static const struct {
    const char *name;
    enum dl_megatron_model model;
} programs[] = {
    {"pretrain_gpt.py", DL_MEGATRON_GPT},
    {"pretrain_bert.py", DL_MEGATRON_BERT},
    {"pretrain_t5.py", DL_MEGATRON_T5},
};

static void read_program(struct dl_megatron_reading *r, const char *program)
{
    const char *const name = dl_base_name(program);
    for (size_t i = 0; i < DL_COUNT(programs); i++)
        if (strcmp(programs[i].name, name) == 0) {
            r->m->model = programs[i].model;
            return;
        }
    dl_megatron_leave(r, "program", program, true, "read as pretrain_gpt.py: what else it does is not in its flags");
}

void dl_megatron_read_launcher(struct dl_megatron_reading *r, const struct dl_launch *launch)
{
    struct counts counts = {0};
    const struct dl_shell_words *const words = &launch->launcher;
    for (size_t i = 0; i < words->n; i++)
        read_option(&counts, words->items[i].text, i + 1 < words->n ? words->items[i + 1].text : NULL);
    r->m->devices = devices_of(&counts);
    if (launch->program) read_program(r, launch->program);
}
