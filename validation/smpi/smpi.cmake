# smpi.cmake - the trainer as SMPI runs it, what smpicc would make of it: a library that smpirun loads. README.md
# says why three of its sources are not those of validation/mpi.
file(GLOB_RECURSE TRAIN_SMPI_SOURCES CONFIGURE_DEPENDS validation/mpi/*.c)
list(FILTER TRAIN_SMPI_SOURCES EXCLUDE REGEX "validation/mpi/(measure/|pacer\\.c|helper\\.c|collectives/swap\\.c)")
add_library(dlsim-train-smpi MODULE ${TRAIN_SMPI_SOURCES} validation/smpi/pacer.c validation/smpi/helper.c
  validation/smpi/swap.c)
target_include_directories(dlsim-train-smpi SYSTEM BEFORE PRIVATE ${SIMGRID_INCLUDE}/smpi ${OPENBLAS_INCLUDE})
target_compile_definitions(dlsim-train-smpi PRIVATE _GNU_SOURCE) # as its headers need
target_link_libraries(dlsim-train-smpi PRIVATE ${OPENBLAS_LIBRARY} dlsim_with_simgrid)
set_target_properties(dlsim-train-smpi PROPERTIES PREFIX "" SUFFIX "" LINKER_LANGUAGE CXX)
