# setup.sh - what the launcher and tests/run share: Debian packages, and a build that is made only when needed.
# Sourced by bash with $root set to the top of the repository. Everything it says goes to stderr.
# shellcheck shell=bash disable=SC2154

build=$root/build
build_packages=(g++ cmake ninja-build pkgconf libjansson-dev libgsl-dev libsimgrid-dev libopenblas-dev)
test_packages=(check clang-format cppcheck libopenmpi-dev openmpi-bin iproute2 procps)

say() { printf 'dlsim: %s\n' "$*" >&2; }

stop() {
    local code=$1
    shift
    say "$@"
    exit "$code"
}

# Prints those of the named packages that are not installed.
missing_packages() {
    local package
    for package; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || printf '%s ' "$package"
    done
}

apt_get() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@"; }

install_packages() {
    command -v dpkg-query >/dev/null || return 0 # not Debian: CMake will say what it misses
    local missing
    read -ra missing <<<"$(missing_packages "$@")"
    ((${#missing[@]})) || return 0
    local by_hand="apt-get update && apt-get install --no-install-recommends ${missing[*]}"
    local as_root=()
    if ((EUID)); then
        sudo -n true 2>/dev/null || { [[ -t 0 ]] && command -v sudo >/dev/null; } ||
            stop 2 "some Debian packages are missing; as root: $by_hand"
        as_root=(sudo)
    fi
    say "installing Debian packages (once): ${missing[*]}"
    local log=$build/install.log
    apt_get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
        { apt_get update && apt_get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        stop 2 "could not install what is missing; as root: $by_hand"
    }
}

# Prints one thing that is younger than the last build, of those that the program is built from. Folders count: they tell
# of added and deleted files. A further test of find may be given.
younger() {
    (cd "$root" && find CMakeLists.txt sim workloads topologies strategies kernels \
        \( -type d -o -name '*.[ch]' -o -name '*.c[up]*' -o -name CMakeLists.txt -o -name '*.cmake' \) -newer build/.built "$@" -print -quit 2>/dev/null)
}

is_stale() { [[ ! -x $build/dlsim || ! -e $build/.built || -n $(younger) ]]; }

# build_quietly COMMAND...: says nothing unless it fails.
build_quietly() {
    "$@" >"$build/build.log" 2>&1 && return
    cat "$build/build.log" >&2
    stop 3 "the build failed"
}

# CMake's cache names the folder it was made for; in a repository that was moved it is of no use.
is_configured() { # FOLDER
    [[ -e $1/build.ninja ]] && grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$1/CMakeCache.txt"
}

# configure FOLDER CMAKE-OPTION...
configure() {
    local folder=$1 fresh=()
    shift
    is_configured "$folder" || fresh=(--fresh)
    build_quietly cmake "${fresh[@]}" -G Ninja -S "$root" -B "$folder" "$@"
}

build_program() {
    install_packages "${build_packages[@]}"
    if [[ ! -x $build/dlsim ]]; then
        say "building (first run, about a minute)..."
    elif [[ ! -e $build/.built || -n $(younger -type f) ]]; then
        say "building..."
    fi
    touch "$build/.building" # what changes while the compiler runs is built the next time
    is_configured "$build" || configure "$build" -DBUILD_TESTING=OFF
    build_quietly ninja -C "$build" --quiet dlsim
    mv "$build/.building" "$build/.built"
}

# with_lock COMMAND...: one at a time, so that calls side by side cannot spoil the build.
with_lock() {
    mkdir -p "$build" && : >>"$build/.lock" || stop 2 "cannot write to $build"
    (
        flock 9
        "$@"
    ) 9>>"$build/.lock" || exit
}

build_if_stale() { ! is_stale || build_program; }
