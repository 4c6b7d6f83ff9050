# kernels.cmake - the library of kernels and the program that times them; the same again with the kernels of a GPU, which
# take longer to build and which dlsim itself does not need.
include(CheckCCompilerFlag)
file(GLOB KERNEL_SOURCES CONFIGURE_DEPENDS kernels/*.c kernels/problems/*.c kernels/cpu/*.c)
list(APPEND KERNEL_SOURCES sim/core/output.c sim/core/visible.c) # need nothing but the C library
list(FILTER KERNEL_SOURCES EXCLUDE REGEX "kernels/(profile|backends)\\.c$")

add_library(dlsim_kernel_objects OBJECT ${KERNEL_SOURCES})
target_include_directories(dlsim_kernel_objects PUBLIC ${PROJECT_SOURCE_DIR})
target_include_directories(dlsim_kernel_objects PRIVATE ${OPENBLAS_INCLUDE})
target_link_libraries(dlsim_kernel_objects PUBLIC ${OPENBLAS_LIBRARY} m)

set(DLSIM_KERNEL_FLAGS -O3 -fopenmp-simd -fno-math-errno -fno-trapping-math)
check_c_compiler_flag(-march=native DLSIM_HAS_NATIVE)
if(DLSIM_HAS_NATIVE)
  list(APPEND DLSIM_KERNEL_FLAGS -march=native)
endif()
target_compile_options(dlsim_kernel_objects PRIVATE ${DLSIM_KERNEL_FLAGS})

add_library(dlsim_kernels STATIC kernels/backends.c)
target_link_libraries(dlsim_kernels PUBLIC dlsim_kernel_objects)

add_executable(dlsim-profile kernels/profile.c)
target_link_libraries(dlsim-profile PRIVATE dlsim_kernels)
add_dependencies(dlsim dlsim-profile) # `dlsim profile` calls it

if(DLSIM_CUDA)
  include(kernels/cuda/cuda.cmake)
endif()
