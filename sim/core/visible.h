/* visible.h - text that terminals show and do not obey.
 *
 * The rule to remember: names and notes come from files of others. After dl_show_only_text() whatever is printed to
 * stdout and stderr passes one filter; JSON, which must keep such characters, escapes them. Needs nothing but the C
 * library, because dlsim-profile has nothing else. */
#ifndef DL_CORE_VISIBLE_H
#define DL_CORE_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DL_NO_CHARACTER = 0xFFFD }; /* bytes that are not UTF-8, such as a C1 control of Latin-1 */

/* The bytes of the character that the text begins with, and its code; 0: the text ends in the middle of it. */
size_t dl_character(const char *text, size_t n_bytes, uint32_t *code);

/* Controls, C1 (U+009B begins a command as ESC [ does), marks that turn the direction of writing, line separators. */
bool dl_is_hidden(uint32_t code);

/* Put '?' for all that is hidden, in place; line ends and tabs, too. */
void dl_make_visible(char *text);

/* From here on stdout and stderr print '?' for all that is hidden, other than line ends (CR LF, too) and tabs. To be
 * called first of all. What dlsim itself wants a terminal to obey goes to the descriptor (dprintf). */
void dl_show_only_text(void);

#endif
