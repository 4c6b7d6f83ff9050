/* bar.h - a line with a name, a quantity, its share and a bar. */
#ifndef DL_REPORT_BAR_H
#define DL_REPORT_BAR_H

void dl_print_bar(const char *name, const char *quantity, double share);

#endif
