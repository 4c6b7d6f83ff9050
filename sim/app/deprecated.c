#include "sim/app/deprecated.h"

#include <stdio.h>

void dl_tell_old_key(const struct dl_scenario *scenario)
{
    if (scenario->old_key)
        fprintf(stderr, "dlsim: %s: is called 'replicas' now; the next release will refuse the old name\n",
                scenario->old_key);
}
