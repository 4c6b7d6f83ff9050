/* page.h - an answer as a page: one HTML file that shows it in figures, and needs nothing but a browser.
 *
 * The rule to remember: the page is the shipped template (sim/draw/page) with its style, its scripts, d3 and the data
 * put in. Texts of the data may come from anywhere: the page reads them as JSON and shows them as text, and no text can
 * end the script that it stands in. */
#ifndef DL_DRAW_PAGE_H
#define DL_DRAW_PAGE_H

#include "sim/core/json.h"

/* Refuse a page that could not be made, because d3 is not there, before the work that it would show. */
enum dl_status dl_page_check(struct dl_error *err);

/* Write it, whole or not at all; "-" is standard output. The data has "view", which names the function of page.js that
 * shows it; it is released. */
enum dl_status dl_page_write(const char *path, json_t *data, struct dl_error *err);

#endif
