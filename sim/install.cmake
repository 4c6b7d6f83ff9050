# install.cmake - what `cmake --install` puts under a prefix, which may be moved afterwards.
include(GNUInstallDirs)

# The program looks for its data in ../share/dlsim, and for its library in ../lib/dlsim, so these are not to be chosen.
install(TARGETS dlsim RUNTIME DESTINATION bin)
install(TARGETS dlsim-simgrid LIBRARY DESTINATION lib/dlsim)
foreach(program dlsim-profile dlsim-profile-cuda dlsim-sweep-mpi)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION bin OPTIONAL)
  endif()
endforeach()

# Manual pages are what the programs print of themselves. The leak checker of a sanitizer has no say in it.
foreach(program dlsim dlsim-profile)
  if(TARGET ${program})
    add_custom_command(TARGET ${program} POST_BUILD VERBATIM
      COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 ./${program} --man > ${program}.1
      WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
    install(FILES ${PROJECT_BINARY_DIR}/${program}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
  endif()
endforeach()
install(FILES LICENSE NOTICE CHANGELOG.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(folder topologies/systems topologies/transports topologies/devices workloads/models strategies/presets
    strategies/software validation/published)
  install(DIRECTORY ${folder}/ DESTINATION share/dlsim/${folder} FILES_MATCHING PATTERN *.json)
endforeach()
install(FILES validation/discrepancy.json DESTINATION share/dlsim/validation)
install(DIRECTORY sim/draw/page/ DESTINATION share/dlsim/sim/draw/page # the template of --html
  PATTERN .clang-format EXCLUDE)
set_target_properties(dlsim-simgrid PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON) # a SimGrid that the system does not know

# The same place as seen from the programs where they are built, and from those of the tests one folder below.
file(RELATIVE_PATH DLSIM_FROM_SHARE ${PROJECT_BINARY_DIR}/share ${PROJECT_SOURCE_DIR})
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share)
file(CREATE_LINK ${DLSIM_FROM_SHARE} ${PROJECT_BINARY_DIR}/share/dlsim SYMBOLIC)
