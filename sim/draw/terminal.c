#define _GNU_SOURCE /* strcasestr */
#include "sim/draw/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_set(const char *name)
{
    const char *const value = getenv(name);
    return value && *value;
}

static enum dl_colours colours_now(void)
{
    const char *const term = getenv("TERM");
    if (!isatty(STDOUT_FILENO) || is_set("NO_COLOR") || !term || !*term || strcmp(term, "dumb") == 0)
        return DL_NO_COLOURS;
    return strstr(term, "256") || is_set("COLORTERM") ? DL_256_COLOURS : DL_8_COLOURS;
}

static bool utf8_now(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_set(names[i])) return strcasestr(getenv(names[i]), "utf-8") || strcasestr(getenv(names[i]), "utf8");
    return false;
}

static uint32_t columns_now(void)
{
    const uint32_t usual = 100, least = 40, most = 1000;
    const char *const told = getenv("COLUMNS");
    struct winsize size = {0};
    unsigned long columns = told ? strtoul(told, NULL, 10) : 0;
    if (columns == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
    if (columns == 0) return usual;
    return columns < least ? least : columns > most ? most : (uint32_t)columns;
}

struct dl_terminal dl_terminal_now(void)
{
    return (struct dl_terminal){.columns = columns_now(), .colours = colours_now(), .utf8 = utf8_now()};
}
