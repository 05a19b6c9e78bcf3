# Run by the target kf_build_info: the commit, then the header from its template.

set(KF_GIT unknown)
if(EXISTS "${KF_SOURCE_DIR}/.git")
  # The tree may belong to another user (a build as root in someone's folder); reading its name is harmless.
  set(git git -c safe.directory=* -C "${KF_SOURCE_DIR}")
  execute_process(COMMAND ${git} rev-parse --short=12 HEAD OUTPUT_VARIABLE hash RESULT_VARIABLE failed
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(failed EQUAL 0)
    execute_process(COMMAND ${git} --no-optional-locks diff --quiet HEAD RESULT_VARIABLE changed ERROR_QUIET)
    set(KF_GIT "${hash}")
    if(changed EQUAL 1)
      string(APPEND KF_GIT "+")
    endif()
  endif()
endif()
configure_file("${KF_TEMPLATE}" "${KF_OUTPUT}" @ONLY)
