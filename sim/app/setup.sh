# setup.sh - what the launcher and tests/run share: Debian packages, and a build that is made only when needed.
# Sourced by bash with $root set to the top of the repository. Everything it says goes to stderr.
# shellcheck shell=bash disable=SC2154

# shellcheck source=sim/app/stale.sh
source "$root/sim/app/stale.sh"
build_packages=(g++ cmake ninja-build pkgconf libjansson-dev libgsl-dev libsqlite3-dev libsimgrid-dev libopenblas-dev)
page_packages=(node-d3) # what --html puts into its page
test_packages=(check clang-format cppcheck iproute2 procps groff-base
    slurmctld slurmd slurm-client munge chromium chromium-driver python3-selenium "${page_packages[@]}")
notebook_packages=(jupyter-notebook python3-nbclient python3-nbformat python3-ipykernel python3-pandas python3-matplotlib
    libopenmpi-dev openmpi-bin)
notebook_python=python3
command -v dpkg-query >/dev/null && notebook_python=/usr/bin/python3 # the one that Debian's packages belong to

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

# A person at the terminal is asked first; --setup, and whoever calls from a script, wants no question.
may_install() { # PACKAGE...
    [[ ${asks-yes} == no || ! -t 0 || ! -t 2 ]] && return
    local answer
    say "these Debian packages are missing: $*"
    read -rp "dlsim: install them with apt-get${as_root[0]:+ and ${as_root[0]}}? [Y/n] " answer && [[ $answer == '' || $answer == [Yy]* ]]
}

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
    may_install "${missing[@]}" || stop 2 "nothing was installed; as root: $by_hand"
    say "installing Debian packages (once): ${missing[*]}"
    local log=$build/install.log
    apt_get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
        { apt_get update && apt_get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        stop 2 "could not install what is missing; as root: $by_hand"
    }
}

# The hash of each file that the program or a test is built from.
contents() {
    (cd "$root" && find CMakeLists.txt "${program_folders[@]}" validation tests "${sources[@]}" -print0 2>/dev/null |
        xargs -0 sha256sum | LC_ALL=C sort)
}

# Whether the files that differ from those of the last build are younger than it.
times_tell() { # CONTENTS
    local line
    [[ -e $build/.sources ]] || return
    while IFS= read -r line; do
        [[ $root/${line#*  } -nt $build/.sources ]] || return
    done < <(LC_ALL=C comm -13 "$build/.sources" - <<<"$1")
}

# To be called before anything is built. Ninja goes by times: where they do not tell what changed, it must begin anew.
begin_build() {
    local now folder
    signature=$(signature) now=$(contents)
    trap 'touch -c "$build/.sources"' EXIT # of the end of the build: what changes while the compiler runs is no younger
    [[ -e $build/.sources && $now == "$(<"$build/.sources")" ]] && return
    rm -f "$build/.built"
    times_tell "$now" || for folder in "$build"/{,*/}; do
        is_configured "$folder" || continue
        build_quietly ninja -C "$folder" -t clean
        build_quietly cmake -S "$root" -B "$folder"
    done
    printf '%s\n' "$now" >"$build/.sources"
}

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

end_build() { printf '%s\n' "$signature" >"$build/.built"; }

# What was built came from files with these contents; only their times are others.
is_built_from() { [[ -x $build/dlsim && -s $build/.built && $1 == "$(<"$build/.sources")" ]]; } # CONTENTS

build_program() {
    signature=$(signature)
    is_built_from "$(contents)" && end_build && return
    install_packages "${build_packages[@]}"
    if [[ -x $build/dlsim ]]; then say "building..."; else say "building (first run, about a minute)..."; fi
    begin_build
    is_configured "$build" || configure "$build" -DBUILD_TESTING=OFF
    build_quietly ninja -C "$build" --quiet dlsim
    end_build
}

build_if_stale() { ! is_stale || build_program; }

check_path() {
    [[ $root != *[$'\n''";$[]*?\|']* ]] ||
        stop 2 "CMake and Ninja cannot build in $(printf %q "$root"): the path must not have a newline or one of \" ; \$ [ ] * ? \\ |"
}

# with_lock COMMAND...: one at a time, so that calls side by side cannot spoil the build.
with_lock() {
    check_path
    { mkdir -p "$build" && : >>"$build/.lock"; } 2>/dev/null ||
        stop 2 "cannot write to $(printf %q "$build"), where the program is built"
    (
        flock 9
        "$@"
    ) 9>>"$build/.lock" || exit
}

# Where nothing can be written, what was built from the same contents will do.
make_current() {
    [[ -w $build ]] || ! is_built_from "$(contents)" || return 0
    with_lock build_if_stale
}

# Without Debian's packages the program says what it misses.
prepare_page() {
    command -v dpkg-query >/dev/null && [[ $(missing_packages "${page_packages[@]}") ]] || return 0
    with_lock install_packages "${page_packages[@]}"
}

set_up() {
    (($# == 0)) || stop 2 "--setup: takes no other words, got '$*'"
    asks=no
    make_current
    prepare_page
    say "ready: $(printf %q "$root/dlsim")"
    exit
}

# What a lesson trains with. A build that was configured without MPI looks for it again; where there is none the lesson
# says so.
build_trainer() {
    [[ -x $build/dlsim-train ]] || build_quietly cmake -S "$root" -B "$build"
    ! ninja -C "$build" -t query dlsim-train >/dev/null 2>&1 || build_quietly ninja -C "$build" --quiet dlsim-train dlsim-measure
}

# Packages of the lessons, and programs that are up to date, unless DLSIM names another.
set_up_notebooks() {
    [[ -z $(missing_packages "${notebook_packages[@]}") ]] ||
        with_lock install_packages "${build_packages[@]}" "${notebook_packages[@]}"
    [[ -z ${DLSIM-} ]] || return 0
    ! is_stale || make_current
    [[ ! -w $build ]] || with_lock build_trainer
}
