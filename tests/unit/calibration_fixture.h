/* calibration_fixture.h - constants of a calibration, for tests of it. */
#ifndef DL_TESTS_CALIBRATION_FIXTURE_H
#define DL_TESTS_CALIBRATION_FIXTURE_H

#include "sim/calibrate/calibrate.h"

#include <check.h>
#include <gsl/gsl_randist.h>

#include "sim/calibrate/calibrate_messages.h"
#include "sim/calibrate/timings.h"
#include "sim/core/random.h"
#include "sim/report/validation.h"
#include "tests/measured.h"
#include "tests/unit/suite.h"

static inline struct dl_tunable *find_constant(const struct dl_tunables *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->items[i].name, name) == 0) return &all->items[i];
    ck_abort_msg("there is no constant %s", name);
    return NULL;
}

#endif
