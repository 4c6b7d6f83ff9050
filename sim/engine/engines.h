/* engines.h - the engines that `--engine` can name; a new one is one file and one line in engines.c. */
#ifndef DL_ENGINE_ENGINES_H
#define DL_ENGINE_ENGINES_H

#include "sim/engine/engine.h"

extern const struct dl_engine_kind dl_engine_simgrid;
extern const struct dl_engine_kind dl_engine_cm02;
extern const struct dl_engine_kind dl_engine_alone;

#endif
