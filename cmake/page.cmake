# The page's scripts, in the order in which they are put together, as part of kf_report_page.
set(page_root "${CMAKE_CURRENT_SOURCE_DIR}/report/page/web")
set(page_scripts dom.js format.js scale.js series.js palette.js view.js detail.js chart_input.js chart.js charts.js runs.js table.js sections.js sweep.js
  theme.js follow.js steer.js page.js)
set(page_files page.html page.css ${page_scripts})
list(TRANSFORM page_files PREPEND "${page_root}/")
set(page_assets "${CMAKE_CURRENT_BINARY_DIR}/page_assets.cpp")
add_custom_command(OUTPUT "${page_assets}"
  COMMAND "${CMAKE_COMMAND}" "-DOUT=${page_assets}" "-DROOT=${page_root}" "-DSCRIPTS=${page_scripts}" -P "${CMAKE_SOURCE_DIR}/cmake/embed_page.cmake"
  DEPENDS ${page_files} "${CMAKE_SOURCE_DIR}/cmake/embed_page.cmake" COMMENT "Embedding the page of runs" VERBATIM)
target_sources(kf_report_page PRIVATE "${page_assets}")
