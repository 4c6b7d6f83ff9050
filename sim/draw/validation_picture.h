/* validation_picture.h - measured against predicted steps as SVG: on the diagonal a prediction is right. */
#ifndef DL_DRAW_VALIDATION_PICTURE_H
#define DL_DRAW_VALIDATION_PICTURE_H

#include "sim/core/error.h"
#include "sim/report/validation.h"

/* Refuses one without a measured step: speed-ups and differences have no place on it. */
enum dl_status dl_draw_validation(const struct dl_validation *v, const char *path, struct dl_error *err);

#endif
