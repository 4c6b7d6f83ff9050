# simgrid.cmake - SimGrid and its version. The adapter (sim/engine/simgrid.cpp) uses its kernel's headers, which change from
# one version to another: 4.0 has others.
find_library(SIMGRID_LIBRARY simgrid)
find_path(SIMGRID_INCLUDE simgrid/version.h)
if(NOT SIMGRID_LIBRARY OR NOT SIMGRID_INCLUDE)
  message(FATAL_ERROR "SimGrid 3.32 was not found (Debian 12: libsimgrid-dev; docs/install.md has other systems); "
    "if it is below a folder of its own, add -DCMAKE_PREFIX_PATH=FOLDER")
endif()
file(STRINGS ${SIMGRID_INCLUDE}/simgrid/version.h SIMGRID_NUMBERS REGEX "define SIMGRID_VERSION_(MAJOR|MINOR) +[0-9]+")
string(REGEX REPLACE ".*MAJOR +([0-9]+).*MINOR +([0-9]+).*" "\\1.\\2" SIMGRID_VERSION "${SIMGRID_NUMBERS}")
if(SIMGRID_VERSION VERSION_LESS 3.32 OR NOT SIMGRID_VERSION VERSION_LESS 4)
  message(FATAL_ERROR "SimGrid ${SIMGRID_VERSION} was found in ${SIMGRID_INCLUDE}; dlsim needs 3.32 or a later 3.x")
elseif(NOT SIMGRID_VERSION VERSION_EQUAL 3.32)
  message(WARNING "SimGrid ${SIMGRID_VERSION} was found; dlsim is tested with 3.32: run tests/run before you rely on it")
endif()
