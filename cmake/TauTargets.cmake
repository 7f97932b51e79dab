# Compiler settings shared by every target, and the function that declares a layer.

find_package(Threads REQUIRED)
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(fmt REQUIRED)

add_library(tau_settings INTERFACE)
target_compile_options(tau_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
  $<$<BOOL:${TAU_WARNINGS_AS_ERRORS}>:-Werror>
  # g++ 12 reports these falsely inside std::optional, std::variant and coroutine frames.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
    -Wno-restrict -Wno-dangling-pointer -Wno-nonnull -Wno-free-nonheap-object -Wno-missing-field-initializers>
  # std::stable_sort of libstdc++ 12 uses a function that it marks as deprecated itself.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-field-initializers -Wno-deprecated-declarations>)
# Who includes the headers must see Asio as the libraries were built with it.
set(TAU_ASIO_DEFINITIONS BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED)
target_compile_definitions(tau_settings INTERFACE ${TAU_ASIO_DEFINITIONS}
  $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
if(TAU_SANITIZE)
  # The flags are global: standard library templates that are instantiated in several targets must agree on them.
  add_compile_options(-fsanitize=${TAU_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TAU_SANITIZE})
endif()

# tau_layer(NAME [PUBLIC deps...] [PRIVATE deps...])
# A static library tau_NAME with the alias tau::NAME, made of all sources below src/NAME.
function(tau_layer name)
  cmake_parse_arguments(arg "" "" "PUBLIC;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  add_library(tau_${name} STATIC ${sources})
  add_library(tau::${name} ALIAS tau_${name})
  set_target_properties(tau_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(tau_${name} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src> $<INSTALL_INTERFACE:include/tau>)
  target_link_libraries(tau_${name} PUBLIC ${arg_PUBLIC} PRIVATE $<BUILD_INTERFACE:tau_settings> ${arg_PRIVATE})
  target_compile_definitions(tau_${name} PUBLIC ${TAU_ASIO_DEFINITIONS})
  target_compile_features(tau_${name} PUBLIC cxx_std_23)
  install(TARGETS tau_${name} EXPORT tau ARCHIVE)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/src/${name} DESTINATION include/tau FILES_MATCHING PATTERN "*.h")
  tau_precompile(tau_${name})
endfunction()

# One precompiled header serves every target: they are compiled with the same flags and definitions.
file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cpp "")
add_library(tau_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
target_link_libraries(tau_precompiled PRIVATE Boost::headers Boost::json fmt::fmt Threads::Threads tau_settings)
if(TAU_PRECOMPILED_HEADERS)
  target_precompile_headers(tau_precompiled PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled.h)
endif()
function(tau_precompile target)
  if(TAU_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM tau_precompiled)
  endif()
endfunction()
