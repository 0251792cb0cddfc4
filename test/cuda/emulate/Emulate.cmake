# Emulate.cmake: CUDA C compiled for the CPU, for tests on machines without a GPU.
#
#   hetu_emulated_library(name SHARED|STATIC sources...)     .cu and .c files
#   hetu_emulated_executable(name sources...)
#
# A .cu file is compiled as C++ with the headers of this folder in place of CUDA's and with HT_EMULATED defined.
include_guard(GLOBAL)
set(HETU_EMULATE ${CMAKE_CURRENT_LIST_DIR})
find_package(Threads REQUIRED)

add_library(hetu_emulation STATIC ${HETU_EMULATE}/threads.cpp ${HETU_EMULATE}/shared.cpp ${HETU_EMULATE}/memory.cpp ${HETU_EMULATE}/streams.cpp ${HETU_EMULATE}/log.cpp ${HETU_EMULATE}/traffic.cpp
  ${HETU_EMULATE}/tensor_core.cpp ${HETU_EMULATE}/cublaslt.cpp ${HETU_EMULATE}/cudnn.cpp)
target_compile_features(hetu_emulation PUBLIC cxx_std_20)
target_compile_definitions(hetu_emulation PUBLIC HT_EMULATED _GNU_SOURCE)
target_compile_options(hetu_emulation PUBLIC $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-unknown-pragmas $<$<BOOL:${HETU_WERROR}>:-Werror>>)
target_include_directories(hetu_emulation BEFORE PUBLIC ${HETU_EMULATE})
target_include_directories(hetu_emulation PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/runtime ${HETU_WRITTEN})
target_link_libraries(hetu_emulation PUBLIC Threads::Threads)
set_target_properties(hetu_emulation PROPERTIES POSITION_INDEPENDENT_CODE ON ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

function(hetu_emulated_sources)
  foreach(source ${ARGN})
    if(source MATCHES "[.]cu$")
      set_source_files_properties(${source} PROPERTIES LANGUAGE CXX)
    endif()
  endforeach()
endfunction()

function(hetu_emulated_library name kind)
  hetu_emulated_sources(${ARGN})
  add_library(${name} ${kind} ${ARGN})
  target_link_libraries(${name} PUBLIC hetu_emulation)
  add_dependencies(${name} operators)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

function(hetu_emulated_executable name)
  hetu_emulated_sources(${ARGN})
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE hetu_emulation)
  add_dependencies(${name} operators)
endfunction()
