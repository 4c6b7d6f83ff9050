# small_tree.sh - for tests of the launcher: a tree with a program of one file in $tree, and what counts failures.
# Sourced by bash with $root set to the top of the repository.
# shellcheck shell=bash disable=SC2154
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

fail() {
    echo "FAILED: $1"
    failures=$((failures + 1))
}

# expect NAME OUTPUT EXIT-CODE STDERR-PATTERN COMMAND...
expect() {
    local name=$1 output=$2 code=$3 words=$4 got status
    shift 4
    got=$("$@" 2>"$tree/stderr")
    status=$?
    [[ $got == "$output" ]] || fail "$name: printed '$got', not '$output'"
    ((status == code)) || fail "$name: exit code $status, not $code: $(<"$tree/stderr")"
    # shellcheck disable=SC2053
    [[ $(<"$tree/stderr") == $words ]] || fail "$name: said '$(<"$tree/stderr")'"
}

mkdir -p "$tree"/{sim/app,elsewhere}
cp "$root/dlsim" "$tree/"
cp "$root"/sim/app/*.sh "$tree/sim/app/"
cat >"$tree/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(small LANGUAGES C)
file(GLOB sources CONFIGURE_DEPENDS sim/app/*.c)
add_executable(dlsim ${sources})
CMAKE
# The program prints its first argument and where its home is, and returns the number of arguments.
cat >"$tree/sim/app/main.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    printf("%s %s\n", argc > 1 ? argv[1] : "", strcmp(getenv("DLSIM_HOME"), HOME) == 0 ? "home" : "away");
    return argc - 1;
}
C
sed -i "s|HOME) ==|\"$tree\") ==|" "$tree/sim/app/main.c"
