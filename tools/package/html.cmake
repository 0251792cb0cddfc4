# Writes README.md or a chapter of the manual as an HTML page; links lead to the other pages.
#
#     cmake -DLOWDOWN=lowdown -DFROM=tools/manual/models.md -DTO=models.html -P html.cmake
file(READ ${FROM} text)
string(REGEX REPLACE "\\((tools/manual/)?([a-z-]+)[.]md([#)])" "(\\2.html\\3" text "${text}")
get_filename_component(name ${FROM} NAME_WE)
get_filename_component(folder ${TO} DIRECTORY)
file(MAKE_DIRECTORY ${folder})
file(WRITE ${TO}.md "${text}")
execute_process(COMMAND ${LOWDOWN} -s --out-no-smarty -Thtml -m title=${name} -o ${TO} ${TO}.md
  COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE ${TO}.md)
