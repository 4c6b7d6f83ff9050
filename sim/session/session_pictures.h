/* session_pictures.h - pictures of a session that has run with a timeline. */
#ifndef DL_SESSION_SESSION_PICTURES_H
#define DL_SESSION_SESSION_PICTURES_H

#include "sim/session/session.h"

/* One of dl_run_pictures, NULL: all, to a file or "-". */
enum dl_status dl_session_draw(struct dl_session *s, const char *picture, const char *path);
/* As a page, with the whole answer. */
enum dl_status dl_session_write_page(struct dl_session *s, const struct dl_asked *asked, const char *path);
/* The schedule of the stages on standard output. */
void dl_session_draw_in_terminal(const struct dl_session *s);

#endif
