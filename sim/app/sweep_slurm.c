#define _GNU_SOURCE /* realpath, open_memstream */
#include "sim/app/sweep_slurm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/core/files.h"
#include "sim/core/home.h"
#include "sim/core/memory.h"

/* A word of a shell, whatever is in it. */
static void write_word(FILE *to, const char *word)
{
    fputc('\'', to);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", to);
        else
            fputc(*word, to);
    fputc('\'', to);
}

static void write_program(FILE *to, struct dl_arena *arena)
{
    const char *const home = getenv("DLSIM_HOME");
    if (home) {
        fputs("DLSIM_HOME=", to);
        write_word(to, home);
        fputc(' ', to);
    }
    write_word(to, dl_arena_format(arena, "%sdlsim", dl_program_folder(arena)));
}

/* What the jobs of the array run. Names are relative to the folder in which it was submitted, as Slurm has it. */
static char *array_script(const struct dl_slurm_request *q, struct dl_arena *arena)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const to = open_memstream(&text, &bytes);
    fprintf(to, "#!/bin/bash\n#SBATCH --job-name=dlsim-sweep\n#SBATCH --array=1-%zu\n", q->n_jobs);
    write_program(to, arena);
    fputs(" sweep ", to);
    write_word(to, q->file);
    fprintf(to, " --shard \"$SLURM_ARRAY_TASK_ID/%zu\" --jobs \"${SLURM_CPUS_PER_TASK:-1}\" -o ", q->n_jobs);
    write_word(to, q->output);
    fputs(".\"$SLURM_ARRAY_TASK_ID\"\n", to);
    fclose(to);
    return text;
}

static char *merge_command(const struct dl_slurm_request *q, struct dl_arena *arena)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const to = open_memstream(&text, &bytes);
    write_program(to, arena);
    fputs(" sweep merge ", to);
    write_word(to, q->output);
    for (size_t i = 1; i <= q->n_jobs; i++) {
        fputc(' ', to);
        write_word(to, dl_arena_format(arena, "%s.%zu", q->output, i));
    }
    fclose(to);
    return text;
}

/* The number that sbatch answers with, in `job`; what else it says goes to the terminal. */
static enum dl_status submit(const char *const *argv, char job[64], struct dl_error *err)
{
    int ends[2], status = 0;
    if (pipe(ends)) return dl_fail(err, DL_STALLED, "sbatch", "cannot be started: %s", strerror(errno));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(ends[1]);
    FILE *const from = fdopen(ends[0], "r");
    if (!fgets(job, 64, from)) job[0] = '\0';
    fclose(from);
    waitpid(child, &status, 0);
    job[strcspn(job, ";\n")] = '\0'; /* JOB or JOB;CLUSTER */
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return dl_fail(err, DL_NOT_FOUND, "sbatch",
                       "is not here: --slurm needs a machine from which jobs are submitted");
    if (status || !job[0]) return dl_fail(err, DL_IMPOSSIBLE, "sbatch", "has refused the job; what it said is above");
    return DL_OK;
}

static enum dl_status submit_both(const struct dl_slurm_request *q, const char *script, struct dl_arena *arena,
                                  struct dl_error *err)
{
    char array[64], gathering[64];
    char *const merge = merge_command(q, arena);
    /* Here, not in the script, where Slurm would look for quotes in them. */
    const char *const partition = q->partition ? dl_arena_format(arena, "--partition=%s", q->partition) : NULL;
    const char *const log = dl_arena_format(arena, "--output=%s.%%a.log", q->output);
    const char *const merge_log = dl_arena_format(arena, "--output=%s.merge.log", q->output);
    const char *const to_array[] = {
        "sbatch", "--parsable", log, partition ? partition : script, partition ? script : NULL, NULL};
    if (!submit(to_array, array, err)) {
        const char *const after = dl_arena_format(arena, "--dependency=afterany:%s", array);
        const char *const wrap = dl_arena_format(arena, "--wrap=%s", merge);
        submit((const char *const[]){"sbatch", "--parsable", "--job-name=dlsim-merge", after, merge_log, wrap,
                                     partition, NULL},
               gathering, err);
    }
    free(merge);
    if (err->status) return err->status;
    printf("submitted %s as job array %s of %zu, and job %s, which merges their parts into %s\n", script, array,
           q->n_jobs, gathering, q->output);
    printf("what is missing afterwards runs with the same command; then: dlsim sweep show %s\n", q->output);
    return DL_OK;
}

static void announce(const struct dl_slurm_request *q, const char *path, const char *script)
{
    printf("would submit %s as a job array of %zu%s%s, and a job that merges their parts into %s; in %s:\n%s", path,
           q->n_jobs, q->partition ? " in partition " : "", q->partition ? q->partition : "", q->output, path, script);
}

enum dl_status dl_sweep_submit(const struct dl_slurm_request *q, struct dl_error *err)
{
    struct dl_arena *const arena = dl_arena_new();
    const char *const path = dl_arena_format(arena, "%s.sbatch", q->output);
    char *const script = array_script(q, arena);
    if (q->dry_run)
        announce(q, path, script);
    else if (!dl_write_file(path, script, strlen(script), err))
        submit_both(q, path, arena, err);
    free(script);
    dl_arena_free(arena);
    return err->status;
}
