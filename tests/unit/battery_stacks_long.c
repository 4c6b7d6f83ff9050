/* battery_stacks_long.c - more random stacks than battery_stacks.c has. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/battery_stacks.h"

int main(void) { return run_stacks("battery_stacks_long", 200, 3000); }
