# Installs tau below WORK and builds and runs two of the examples against it, from folders that know nothing of tau's
# build: what a program that uses the libraries does. Run by ctest with -DBUILD=… -DSOURCE=… -DWORK=….
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
foreach(example ai-tools agent-minimal)
  file(COPY ${SOURCE}/examples/${example} DESTINATION ${WORK})
  run(${CMAKE_COMMAND} -S ${WORK}/${example} -B ${WORK}/${example}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_BUILD_TYPE=Debug)
  run(${CMAKE_COMMAND} --build ${WORK}/${example}/build)
  run(${WORK}/${example}/build/${example})
  message("${example}: ${output}")
endforeach()
run(${WORK}/prefix/bin/tau --version)
