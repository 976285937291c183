# Writes the man pages (OUTPUT/man) and the completions (OUTPUT/completion) of the command COMMAND.
#   cmake -DCOMMAND=build/cleave -DOUTPUT=build -P cmake/manual.cmake
function(run) # RUN ARGUMENT...
  execute_process(COMMAND ${COMMAND} ${ARGN} RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "${COMMAND} ${ARGN} failed: ${status}")
  endif()
endfunction()

file(REMOVE_RECURSE ${OUTPUT}/man ${OUTPUT}/completion)
file(MAKE_DIRECTORY ${OUTPUT}/completion)
run(help --man-pages ${OUTPUT}/man)
foreach(script bash=cleave zsh=_cleave fish=cleave.fish)
  string(REGEX REPLACE "=.*" "" shell ${script})
  string(REGEX REPLACE ".*=" "" name ${script})
  run(completion ${shell} OUTPUT_FILE ${OUTPUT}/completion/${name})
endforeach()
