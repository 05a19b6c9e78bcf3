"""Makes cases.json: templates in the shapes that models are published with, what they are given, and what transformers makes of it.

Run with transformers 5.3.0 and jinja2: python oracle.py > cases.json. Each case has name, template, variables, text, and spans, the
characters in {% generation %} as bytes [begin, end).
"""

import json
import sys

from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi, \u00fc\u4e16?  "},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello."},
    {"role": "user", "content": "2+2 <|im_end|>\n"},
    {"role": "assistant", "content": "4"},
]
NO_SYSTEM = CHAT[1:]
TOOLS = [
    {"type": "function", "function": {"name": "w", "description": "Weather \"now\"", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "enum": ["\u00c4", "b"]}, "n": {"type": "integer", "default": 3}},
        "required": ["city"]}}}
]
CALLS = [
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "id": "abcdefghi", "function": {"name": "w", "arguments": {"city": "\u00c4", "n": 2, "f": 1.5, "t": True, "z": None}}}]},
    {"role": "tool", "content": "Sunny", "name": "w"},
    {"role": "tool", "content": "Warm", "name": "w"},
    {"role": "assistant", "content": "It is sunny."},
]

CHATML = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

GENERATION = """{%- for message in messages %}
{%- if message.role == 'assistant' %}
{{- '<|im_start|>assistant\n' }}{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}
{{ '\n' }}
{%- else %}
{{- '<|im_start|>' ~ message.role ~ '\n' ~ message.content ~ '<|im_end|>\n' }}
{%- endif %}
{%- endfor %}
"""

LLAMA3 = """{{- bos_token }}
{%- if custom_tools is defined %}{% set tools = custom_tools %}{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{#- The system message comes first. -#}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\n\n" }}
{%- if tools is not none %}
    {{- "You may call:\n\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one call at a time") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""

QWEN3 = """{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- "# Tools\n\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools><|im_end|>\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' }}
        {{- content }}
        {{- '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("ids of calls have 9 characters") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool" %}
        {{- '[TOOL_RESULTS] {"content": ' + message.content|string + "}[/TOOL_RESULTS]" }}
    {%- else %}
        {{- raise_exception("no such role here: " ~ message.role) }}
    {%- endif %}
{%- endfor %}
"""

GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"""

PHI3 = """{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"""

DEEPSEEK = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='') %}{%- for message in messages %}{%- if message['role'] == 'system' %}{% set ns.system_prompt = message['content'] %}{%- endif %}{%- endfor %}{{bos_token}}{{ns.system_prompt}}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<\uff5cUser\uff5c>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and message['content'] is not none %}{%- if ns.is_tool %}{{'<\uff5ctool\u2581outputs\u2581end\uff5c>' + message['content'] + '<\uff5cend\u2581of\u2581sentence\uff5c>'}}{%- set ns.is_tool = false -%}{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<\uff5cAssistant\uff5c>' + content + '<\uff5cend\u2581of\u2581sentence\uff5c>'}}{%- endif %}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<\uff5ctool\u2581output\u2581begin\uff5c>' + message['content']}}{%- set ns.is_output_first = false %}{%- else %}{{'\\n<\uff5ctool\u2581output\u2581begin\uff5c>' + message['content']}}{%- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{'<\uff5ctool\u2581outputs\u2581end\uff5c>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<\uff5cAssistant\uff5c>'}}{% endif %}"""

LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""

SMOL = """{# a head with defaults #}
{%- if enable_thinking is not defined -%}
{%- set enable_thinking = true -%}
{%- endif -%}
{%- set mode = "/think" if enable_thinking else "/no_think" -%}
{%- macro part(name, items) -%}
  {%- for key in items -%}
    {{ name ~ ":" ~ key }}{{ ", " if not loop.last else "" }}
  {%- endfor -%}
{%- endmacro -%}
{{- "<|im_start|>system\n" -}}
## Metadata

Mode: {{ mode }}
Roles: {{ part("r", messages | map(attribute="role") | unique | list) }}
{%- if messages[0].role == "system" and "/no" in messages[0].content %}
  {%- set mode = "/off" %}
{%- endif %}

{% for message in messages if message.role in ["user", "assistant"] -%}
    {%- set content = message.content if message.content is string else "" -%}
    {%- if message.role == "user" -%}
        {{ "<|im_start|>" + message.role + "\n"  + content + "<|im_end|>\n" }}
    {%- elif message.role == "assistant" -%}
        {% generation %}
        {%- if mode == "/think" -%}
            {{ "<|im_start|>assistant\n" + content.lstrip("\n") + "<|im_end|>\n" }}
        {%- else -%}
            {{ "<|im_start|>assistant\n" + "<think>\n\n</think>\n" + content.lstrip("\n") + "<|im_end|>\n" }}
        {%- endif -%}
        {% endgeneration %}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ "<|im_start|>assistant\n" }}
{%- endif -%}"""

EXPRESSIONS = r"""{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 1.0 }} {{ 1e20 }} {{ 0.1 + 0.2 }} {{ 10 - 2 * 3 }}
{{ "a" ~ 1 ~ none ~ true }}|{{ "x" * 3 }}|{{ [1, 2] + [3] }}|{{ {"k": [1.5, none, "it's"]} }}
{{ "\u00fcber"|length }} {{ "\u00fcber"[1:3] }} {{ "abc"[::-1] }} {{ "abc"[-1] }} {{ [1,2,3][:-1] }} {{ [1,2,3][5] is defined }} {{ range(5)|list }} {{ range(6, 0, -2)|join("-") }}
{{ "A b"|lower }} {{ "a b"|upper }} {{ "hello wORLD"|title }} {{ "hELLO"|capitalize }} {{ "  x "|trim }}. {{ "xxaxx".strip("x") }} {{ "a,b,,c".split(",") }} {{ "a  b c".split() }} {{ "a.b.c".rsplit(".", 1) }} {{ "a\nb"|indent(2) }}
{{ missing|default("d") }} {{ ""|default("e", true) }} {{ missing is defined }} {{ none is none }} {{ 3 is odd }} {{ "x" is string }} {{ {} is mapping }} {{ [] is sequence }} {{ 1 is number }} {{ true is boolean }} {{ "b" in "abc" }} {{ 2 not in [1, 3] }}
{{ 1 < 2 < 3 }} {{ not 1 == 2 and 3 > 2 or false }} {{ "yes" if 1 else "no" }} {{ ("no" if 1) if false else "z" }}
{{ [3, 1, 2]|sort }} {{ ["b", "A"]|sort }} {{ [1, 1, 2]|unique|list }} {{ {"b": 1, "a": 2}|dictsort|tojson }} {{ {"b": 1, "a": 2}|items|list|tojson }} {{ [1,2,3]|sum }} {{ [1,5,3]|max }} {{ [[1, 2], [3]]|map("first")|list }} {{ messages|map(attribute="role")|join(",") }} {{ [0, 1, ""]|select|list }} {{ [1, 2, 3]|reject("odd")|list }} {{ messages|rejectattr("role", "eq", "user")|map(attribute="role")|list }}
{{ {"a": "\u00fc<>&'\"\n\t\\", "n": 1.0, "l": [], "d": {}}|tojson }} {{ {"b": 1, "a": [1, {"x": 2}]}|tojson(indent=2, sort_keys=true) }} {{ [1, 2]|tojson(separators=(",", ":")) }} {{ "\u4e16"|tojson(ensure_ascii=true) }}
{{ "a-b-a".replace("a", "c") }} {{ "a-b-a"|replace("a", "c", 1) }} {{ "abc".startswith(("x", "a")) }} {{ "abc".find("c") }} {{ "aXbX".count("X") }} {{ "x".join(["1", "2"]) }} {{ {"k": 1}.get("z", 9) }} {{ {"k": 1}.get("z") }} {{ {"k": 1}.keys()|list }} {{ "3"|int + 1 }} {{ "z"|int(7) }} {{ "2.5"|float }} {{ 2.567|round(2) }} {{ 2.5|round|int }} {{ -3|abs }} {{ [1,2]|first }} {{ "abc"|last }} {{ [1,2]|reverse|list }} {{ "<a>"|e }} {{ "a" "b" }} {{ 1 if missing }}|
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set block %}in {{ a }}{% endset %}{{ block|upper }}{% filter lower %}ABC{% endfilter %}
{% for k, v in {"x": 1, "y": 2}.items() %}{{ loop.index }}{{ k }}{{ v }}{{ loop.revindex0 }}{{ loop.previtem[0] if loop.previtem is defined }};{% else %}none{% endfor %}{% for x in [] %}{% else %}empty{% endfor %}
{% for i in range(10) %}{% if i == 1 %}{% continue %}{% endif %}{% if i > 3 %}{% break %}{% endif %}{{ i }}{% endfor %}
{%- macro m(a, b="B") -%}[{{ a }}{{ b }}{{ caller() if caller is defined }}]{%- endmacro -%}
{{ m(1) }}{{ m(1, b=2) }}{% call m("c") %}inner{% endcall %}
   {% if true %}
   kept
   {% endif %}
   {%+ if true %}plus{% endif +%}
end {{- "  tight  " -}}   .
{# gone #}
last
"""

SCOPES = """{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }},{% endfor %}{{ x }}{% set ns = namespace(x=1) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{% if true %}{% set y = 5 %}{% endif %}{{ y }}{% for i in [1] %}{% for j in [2] %}{{ loop.index }}{% endfor %}{{ loop.last }}{% endfor %}"""

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def cases():
    for name, template, chats in [
        ("chatml", CHATML, [CHAT, NO_SYSTEM]),
        ("generation", GENERATION, [CHAT]),
        ("llama3", LLAMA3, [CHAT, NO_SYSTEM, CALLS]),
        ("qwen3", QWEN3, [CHAT, NO_SYSTEM, CALLS]),
        ("mistral", MISTRAL, [CHAT[:-1], NO_SYSTEM, CALLS]),
        ("gemma", GEMMA, [NO_SYSTEM]),
        ("phi3", PHI3, [CHAT]),
        ("deepseek", DEEPSEEK, [CHAT, CALLS]),
        ("llama2", LLAMA2, [CHAT, NO_SYSTEM]),
        ("smol", SMOL, [CHAT, NO_SYSTEM]),
    ]:
        for i, chat in enumerate(chats):
            for more in [{}, {"add_generation_prompt": True}, {"tools": TOOLS}, {"enable_thinking": False, "add_generation_prompt": True}]:
                if "tools" in more and name not in ("llama3", "qwen3", "mistral"):
                    continue
                yield f"{name} {i} {' '.join(more)}", template, {"messages": chat, "tools": None, **TOKENS, **more}
    yield "expressions", EXPRESSIONS, {"messages": CHAT}
    yield "scopes", SCOPES, {}


out = []
for name, template, variables in cases():
    compiled = _compile_jinja_template(template)
    case = {"name": name, "template": template, "variables": variables}
    try:
        spans = []
        if "{% generation %}" in template:
            blocks = []
            with compiled.environment.activate_tracker(blocks, spans):
                for block in compiled.generate(**variables):
                    blocks.append(block)
            text = "".join(blocks)
        else:
            text = compiled.render(**variables)
        case["text"] = text
        case["spans"] = [[len(text[:a].encode()), len(text[:b].encode())] for a, b in spans if a < b]
    except Exception as error:  # raise_exception
        case["error"] = str(error)
    out.append(case)
    del case
templates = {}
for case in out:
    templates[case["name"].split()[0]] = case.pop("template")
json.dump({"templates": templates, "cases": out}, sys.stdout, ensure_ascii=False, indent=1)
print()
