/* validation_notes.c - rows one by one, for those where a reader will ask why they differ. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/report/validation.h"

enum { note_width = 108 };

static void print_number(double x, const char *format)
{
    if (isnan(x))
        printf("%10s", "-");
    else
        printf(format, x);
}

static void print_share(double share) { print_number(share > 0 ? 100 * share : NAN, "%10.1f"); }

/* Beside a published share stands the one that counts the same flop. */
static void print_shares(const struct dl_compared *row)
{
    const bool with_recompute = row->hfu > 0;
    print_share(with_recompute ? row->hfu : row->mfu);
    print_share(row->failure || row->quantity != DL_STEP ? 0
                : with_recompute                         ? row->predicted_hfu
                                                         : row->predicted_mfu);
    printf("  %s", with_recompute ? "hfu" : "mfu");
}

/* Broken at spaces. */
static void print_note(const char *note)
{
    while (*note) {
        size_t length = strlen(note);
        if (length > note_width) {
            length = note_width;
            while (length && note[length] != ' ') length--;
            if (!length) length = note_width;
        }
        printf("      %.*s\n", (int)length, note);
        note += length;
        while (*note == ' ') note++;
    }
}

static void print_row(const struct dl_compared *row)
{
    printf("  %-32.32s", row->id);
    print_number(row->measured_s, "%10.4g");
    print_number(row->failure ? NAN : row->predicted_s, "%10.4g");
    print_number(row->failure ? NAN : 100 * dl_compared_error(row), "%+10.1f");
    if (row->mfu > 0 || row->hfu > 0 || (isnan(row->measured_s) && !row->failure)) print_shares(row);
    putchar('\n');
    print_note(row->note);
}

void dl_validation_notes_text(const struct dl_validation *v)
{
    bool begun = false;
    for (size_t i = 0; i < v->n_rows; i++) {
        if (!v->rows[i].note) continue;
        if (!begun)
            printf("\n  %-32s%10s%10s%10s%10s%10s\n", "seconds of a step, or speed-up", "published", "predicted",
                   "error", "share", "predicted");
        begun = true;
        print_row(&v->rows[i]);
    }
}
