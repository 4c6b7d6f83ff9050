/* battery_stacks.c - random stacks of the examples of strategies; battery_stacks_long.c has more of them. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/battery_stacks.h"

int main(void) { return run_stacks("battery_stacks", 0, 200); }
