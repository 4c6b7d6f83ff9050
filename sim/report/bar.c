#include "sim/report/bar.h"

#include <stdio.h>
#include <string.h>

void dl_print_bar(const char *name, const char *quantity, double share)
{
    enum { width = 40 };
    char bar[width + 1];
    const size_t length = share > 0 ? (size_t)(share * width + 0.5) : 0;
    memset(bar, '#', sizeof bar);
    bar[length < width ? length : width] = '\0';
    printf("    %-14s %9s %5.1f %%%s%s\n", name, quantity, 100 * share, *bar ? "  " : "", bar);
}
