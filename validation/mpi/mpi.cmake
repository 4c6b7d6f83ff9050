# mpi.cmake - the trainer, in fp32 and, to compare losses closely, in double.
file(GLOB_RECURSE TRAIN_SOURCES CONFIGURE_DEPENDS validation/mpi/*.c)
foreach(program dlsim-train dlsim-train-double)
  add_executable(${program} ${TRAIN_SOURCES})
  target_include_directories(${program} PRIVATE ${OPENBLAS_INCLUDE})
  # Before the library's own: GSL brings a slow BLAS along, and SimGrid an MPI that only smpirun can start.
  target_link_libraries(${program} PRIVATE ${OPENBLAS_LIBRARY} MPI::MPI_C dlsim_core Threads::Threads)
  target_link_options(${program} PRIVATE LINKER:--as-needed)
  set_target_properties(${program} PROPERTIES LINKER_LANGUAGE CXX)
endforeach()
target_compile_definitions(dlsim-train-double PRIVATE DL_TRAIN_DOUBLE)
