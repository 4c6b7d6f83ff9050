#define _POSIX_C_SOURCE 200809L
#include "kernels/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { key_size = 200 };

struct line {
    char key[key_size];
    struct dl_timing timing;
};

struct dl_journal {
    char *path;
    FILE *file;
    struct line *lines;
    size_t n, capacity;
};

static void append(struct dl_journal *j, const char *key, const struct dl_timing *t)
{
    if (j->n == j->capacity) {
        j->capacity = j->capacity ? 2 * j->capacity : 64;
        struct line *const grown = dl_memory(j->capacity * sizeof *grown);
        if (j->n) memcpy(grown, j->lines, j->n * sizeof *grown);
        free(j->lines);
        j->lines = grown;
    }
    struct line *const line = &j->lines[j->n++];
    snprintf(line->key, sizeof line->key, "%.*s", key_size - 1, key);
    line->timing = *t;
}

/* What no clock can have told: someone has changed the file, or the disk has. */
static const char *refuse_times(size_t number, const char *text)
{
    static char complaint[300];
    snprintf(complaint, sizeof complaint,
             "line %zu: must have seconds above 0, a spread of at least 0 and a count of samples, got '%.*s'; delete "
             "the line to time this again",
             number, (int)strcspn(text, "\n"), text);
    return complaint;
}

/* "key: seconds spread samples"; a line that was cut off in the middle is not one. Journals that were joined may have
 * a key twice: the first counts. */
static const char *take_line(struct dl_journal *j, size_t number, char *text)
{
    const double most_s = 1e9, most_spread = 1e9, most_samples = 1e15;
    char *const colon = strchr(text, ':');
    double seconds, spread, n_samples;
    if (!colon || !strchr(colon, '\n')) return NULL;
    if (sscanf(colon + 1, "%lf %lf %lf", &seconds, &spread, &n_samples) != 3) return NULL;
    if (!(seconds > 0 && seconds <= most_s && spread >= 0 && spread <= most_spread && n_samples >= 1 &&
          n_samples <= most_samples)) /* so that NaN fails too */
        return refuse_times(number, colon + 1 + strspn(colon + 1, " "));
    *colon = 0;
    const struct dl_timing t = {.seconds = seconds, .spread = spread, .n_samples = (size_t)n_samples};
    if (!dl_journal_find(j, text).n_samples) append(j, text, &t);
    return NULL;
}

static const char *read_lines(struct dl_journal *j, const char *head)
{
    char text[2 * key_size + 400];
    if (!fgets(text, sizeof text, j->file)) return NULL; /* a new one */
    text[strcspn(text, "\n")] = 0;
    if (strcmp(text, head)) return "is of another device or other libraries; delete it to begin anew";
    const char *wrong = NULL;
    for (size_t number = 2; !wrong && fgets(text, sizeof text, j->file); number++) wrong = take_line(j, number, text);
    return wrong;
}

/* A new journal gets its head; what was cut off in the middle of a line must not spoil the next one. */
static const char *begin_line(struct dl_journal *j, const char *head)
{
    fseek(j->file, 0, SEEK_END);
    if (ftell(j->file) == 0) {
        fprintf(j->file, "%s\n", head);
        return fflush(j->file) ? strerror(errno) : NULL;
    }
    fseek(j->file, -1, SEEK_END);
    const bool is_cut_off = fgetc(j->file) != '\n';
    fseek(j->file, 0, SEEK_END);
    if (is_cut_off) fputc('\n', j->file);
    return fflush(j->file) ? strerror(errno) : NULL;
}

/* Its name can be foreseen: a link that someone has put there would lead the times into a file of the user's. */
static const char *open_file(struct dl_journal *j)
{
    struct stat info;
    const int file = open(j->path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (file < 0) return errno == ELOOP ? "is a link, where the journal itself must be" : strerror(errno);
    j->file = fdopen(file, "a+");
    if (fstat(file, &info) || !S_ISREG(info.st_mode)) return "is there, and is not a file";
    rewind(j->file);
    return NULL;
}

struct dl_journal *dl_journal_open(const char *path, const char *head, const char **wrong)
{
    struct dl_journal *const j = dl_memory(sizeof *j);
    j->path = dl_memory(strlen(path) + 1);
    strcpy(j->path, path);
    *wrong = open_file(j);
    if (!*wrong) *wrong = read_lines(j, head);
    if (!*wrong) *wrong = begin_line(j, head);
    if (!*wrong) return j;
    dl_journal_close(j, false);
    return NULL;
}

struct dl_timing dl_journal_find(const struct dl_journal *j, const char *key)
{
    for (size_t i = 0; i < j->n; i++)
        if (strcmp(j->lines[i].key, key) == 0) return j->lines[i].timing;
    return (struct dl_timing){0};
}

size_t dl_journal_count(const struct dl_journal *j) { return j->n; }

/* What is written stays if the program is killed; all digits, so that the file comes out the same. */
const char *dl_journal_add(struct dl_journal *j, const char *key, const struct dl_timing *t)
{
    append(j, key, t);
    const bool is_printed = fprintf(j->file, "%s: %.17g %.17g %zu\n", key, t->seconds, t->spread, t->n_samples) > 0;
    return fflush(j->file) || !is_printed ? strerror(errno) : NULL;
}

void dl_journal_close(struct dl_journal *j, bool is_finished)
{
    if (!j) return;
    if (j->file) fclose(j->file);
    if (is_finished) remove(j->path);
    free(j->lines);
    free(j->path);
    free(j);
}
