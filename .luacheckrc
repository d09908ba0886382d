-- Settings of luacheck for balancer/ and the Lua of tests.
std = "ngx_lua"
-- OpenNJet has the same functions under its own name.
read_globals = { "njt" }
max_line_length = 130
