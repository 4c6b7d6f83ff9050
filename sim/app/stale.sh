# stale.sh - whether the program must be built again. Apart from setup.sh because every call of the launcher reads it.
# Sourced by bash with $root set to the top of the repository.
# shellcheck shell=bash disable=SC2154

build=$root/build
program_folders=(cmake sim workloads topologies strategies kernels)
sources=(\( -name '*.[ch]' -o -name '*.c[up]*' -o -name CMakeLists.txt -o -name '*.cmake' \) -type f)

# Size and times of each file that the program is built from. A file that was unpacked may be older than the build, so
# any other time counts, not only a later one; %C, of when the entry changed, comes with no archive.
signature() {
    cd "$root" && find CMakeLists.txt "${program_folders[@]}" "${sources[@]}" -printf '%p %s %T@ %C@\n' 2>/dev/null
}

is_stale() { [[ ! -x $build/dlsim || ! -s $build/.built ]] || ! signature | cmp -s - "$build/.built"; }
