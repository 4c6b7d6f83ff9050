/* terminal.h - what standard output can show: how wide it is, and whether it has colours and more than ASCII. */
#ifndef DL_DRAW_TERMINAL_H
#define DL_DRAW_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

enum dl_colours { DL_NO_COLOURS, DL_8_COLOURS, DL_256_COLOURS };

struct dl_terminal {
    uint32_t columns;
    enum dl_colours colours; /* none where it is no terminal, TERM is dumb or NO_COLOR is set (no-color.org) */
    bool utf8;               /* by LC_ALL, LC_CTYPE and LANG, of which the first that is set decides */
};

/* Width: COLUMNS, else that of the terminal, else 100. */
struct dl_terminal dl_terminal_now(void);

#endif
