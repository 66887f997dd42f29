/* Texts of the official conformance suite's scenarios, raw JSON all of them: what its server has to
 * answer, for conf_offer.h and conf-library.c. */
#ifndef LP_TEST_CONF_TEXTS_H
#define LP_TEST_CONF_TEXTS_H

#define PNG                                                                                        \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5Erk"   \
    "Jggg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
#define CONTENT(parts) "{\"content\":[" parts "]}"
#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define IMAGE "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"
#define RESOURCE(uri, mime, text)                                                                  \
    "{\"type\":\"resource\",\"resource\":{\"uri\":\"" uri "\",\"mimeType\":\"" mime                \
    "\",\"text\":\"" text "\"}}"
#define OBJECT(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"
#define USER(part) "{\"role\":\"user\",\"content\":" part "}"
#define STRING(name) "\"" name "\":{\"type\":\"string\"}"
#define MESSAGES(list) "{\"messages\":[" list "]}"
#define NEEDED(argument) "{\"name\":\"" argument "\",\"description\":\"x\",\"required\":true}"

#define SIMPLE_TEXT CONTENT(TEXT("This is a simple text response for testing."))
#define IMAGE_CONTENT CONTENT(IMAGE)
#define AUDIO_CONTENT                                                                              \
    CONTENT("{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}")
#define EMBEDDED_RESOURCE                                                                          \
    CONTENT(RESOURCE(                                                                              \
        "test://embedded-resource", "text/plain", "This is an embedded resource content."))
#define MULTIPLE_CONTENT                                                                           \
    CONTENT(TEXT("Multiple content types test:") "," IMAGE "," RESOURCE(                           \
        "test://mixed-content-resource", "application/json",                                       \
        "{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}"))
#define SIMPLE_PROMPT MESSAGES(USER(TEXT("This is a simple prompt for testing.")))
#define PROMPT_WITH_IMAGE MESSAGES(USER(IMAGE) "," USER(TEXT("Please analyze the image above.")))
#define COMPLETION                                                                                 \
    "{\"completion\":{\"values\":[\"paris\",\"park\",\"party\"],\"total\":3,\"hasMore\":false}}"
#define STATIC_TEXT "This is the content of the static text resource."

#define CHOICES                                                                                    \
    "[{\"const\":\"value1\",\"title\":\"First Option\"},{\"const\":\"value2\",\"title\":"          \
    "\"Second Option\"},{\"const\":\"value3\",\"title\":\"Third Option\"}]"
#define USER_PROPERTIES                                                                            \
    "\"username\":{\"type\":\"string\",\"description\":\"User's response\"},"                      \
    "\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}"
#define DEFAULT_PROPERTIES                                                                         \
    "\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"                                     \
    "\"age\":{\"type\":\"integer\",\"default\":30},"                                               \
    "\"score\":{\"type\":\"number\",\"default\":95.5},"                                            \
    "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"              \
    "\"default\":\"active\"},"                                                                     \
    "\"verified\":{\"type\":\"boolean\",\"default\":true}"
#define ENUM_PROPERTIES                                                                            \
    "\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"     \
    "\"titledSingle\":{\"type\":\"string\",\"oneOf\":" CHOICES "},"                                \
    "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],\"enumNames\":"     \
    "[\"Option One\",\"Option Two\",\"Option Three\"]},"                                           \
    "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":"               \
    "[\"option1\",\"option2\",\"option3\"]}},"                                                     \
    "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":" CHOICES "}}"

#define SCHEMA_2020_12                                                                             \
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"$defs\":" \
    "{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{\"street\":"     \
    "{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},\"properties\":{\"name\":{\"type\":"  \
    "\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},\"contactMethod\":{\"type\":"          \
    "\"string\",\"enum\":[\"phone\",\"email\"]},\"phone\":{\"type\":\"string\"},\"email\":"        \
    "{\"type\":\"string\"}},\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":"      \
    "[\"email\"]}]}],\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"            \
    "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},\"else\":"              \
    "{\"required\":[\"email\"]},\"additionalProperties\":false}"

#define CONF_FORM(message, name, type)                                                             \
    "{\"message\":\"" message                                                                      \
    "\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"" type   \
    "\"}},\"required\":[\"" name "\"]}}"
#define CONF_SAMPLE(text)                                                                          \
    "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" text            \
    "\"}}],\"maxTokens\":100}"
#define CONF_REGION                                                                                \
    "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\",\"x-mcp-header\":"       \
    "\"Region\"}}}"

#endif
