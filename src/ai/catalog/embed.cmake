# Puts data/*.json into tau_ai as strings: one generated source, written again when a data file changes.
#
# Included from src/CMakeLists.txt it adds the rule; run as `cmake -DCATALOG_OUTPUT=FILE -P embed.cmake` it is the rule.

if(CATALOG_OUTPUT)
  file(GLOB files ${CMAKE_CURRENT_LIST_DIR}/data/*.json)
  list(SORT files)
  set(source "// Generated from src/ai/catalog/data by src/ai/catalog/embed.cmake.\n#include \"ai/catalog/catalog_data.h\"\n\n")
  string(APPEND source "namespace tau::ai {\n\nstd::string_view catalog_data(std::string_view provider) {\n")
  foreach(file IN LISTS files)
    get_filename_component(provider ${file} NAME_WE)
    file(READ ${file} text)
    string(APPEND source "  if (provider == \"${provider}\") return R\"catalog(${text})catalog\";\n")
  endforeach()
  string(APPEND source "  return {};\n}\n\n}  // namespace tau::ai\n")
  file(WRITE ${CATALOG_OUTPUT} "${source}")
  return()
endif()

file(GLOB catalog_data CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/data/*.json)
set(catalog_source ${CMAKE_CURRENT_BINARY_DIR}/catalog_data.cpp)
add_custom_command(OUTPUT ${catalog_source}
  COMMAND ${CMAKE_COMMAND} -DCATALOG_OUTPUT=${catalog_source} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${catalog_data} ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Embedding the model catalogue")
target_sources(tau_ai PRIVATE ${catalog_source})
set_source_files_properties(${catalog_source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
