import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.HexFormat;
import java.util.List;
import org.apache.flink.formats.csv.CsvRowDataDeserializationSchema;
import org.apache.flink.formats.csv.CsvRowDataSerializationSchema;
import org.apache.flink.formats.raw.RawFormatDeserializationSchema;
import org.apache.flink.formats.raw.RawFormatSerializationSchema;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.DateType;
import org.apache.flink.table.types.logical.LocalZonedTimestampType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.TimeType;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;

/** Reads cases of csv and raw from standard input, one JSON object a line, and answers what Flink makes of each. */
public class FlinkCases {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }

    static ObjectNode answer(JsonNode one) {
        ObjectNode answer = JSON.createObjectNode();
        boolean raw = one.get("format").asText().equals("raw");
        byte[] body = one.has("hex")
                ? HexFormat.of().parseHex(one.get("hex").asText().replace(" ", ""))
                : one.get("body").asText().getBytes(StandardCharsets.UTF_8);
        RowData row = null;
        for (boolean ignore : raw ? new boolean[] {false} : new boolean[] {false, true}) {
            String mode = ignore ? "ignore" : "default";
            try {
                RowType type = type(one);
                RowData read = raw ? raw(type, one, body) : csv(type, one, body, ignore);
                if (read == null) {
                    answer.put(mode, "no row");
                } else {
                    answer.putArray(mode).add(show(read, type));
                    row = row == null ? read : row;
                }
            } catch (Throwable error) {
                answer.put(mode, "error");
            }
        }
        if (row != null) {
            try {
                byte[] written = raw ? writeRaw(type(one), one, row) : writeCsv(type(one), one, row);
                if (raw) {
                    answer.put("written", HexFormat.of().formatHex(written));
                } else {
                    answer.put("written", new String(written, StandardCharsets.UTF_8));
                }
            } catch (Throwable error) {
                answer.put("written", "error");
            }
        }
        return answer;
    }

    static RowType type(JsonNode one) {
        StringBuilder columns = new StringBuilder();
        for (JsonNode column : one.get("schema")) {
            columns.append(columns.length() == 0 ? "" : ", ").append(column.asText());
        }
        return (RowType) LogicalTypeParser.parse("ROW<" + columns + ">", FlinkCases.class.getClassLoader());
    }

    static String option(JsonNode one, String name) {
        JsonNode value = one.path("options").get(name);
        return value == null ? null : value.asText();
    }

    static boolean on(JsonNode one, String name) {
        return "true".equals(option(one, name));
    }

    static RowData csv(RowType type, JsonNode one, byte[] body, boolean ignore) throws Exception {
        CsvRowDataDeserializationSchema.Builder csv =
                new CsvRowDataDeserializationSchema.Builder(type, InternalTypeInfo.of(type)).setIgnoreParseErrors(ignore);
        if (option(one, "csv.field-delimiter") != null) csv.setFieldDelimiter(option(one, "csv.field-delimiter").charAt(0));
        if (option(one, "csv.quote-character") != null) csv.setQuoteCharacter(option(one, "csv.quote-character").charAt(0));
        if (on(one, "csv.disable-quote-character")) csv.disableQuoteCharacter();
        if (option(one, "csv.escape-character") != null) csv.setEscapeCharacter(option(one, "csv.escape-character").charAt(0));
        if (option(one, "csv.array-element-delimiter") != null) csv.setArrayElementDelimiter(option(one, "csv.array-element-delimiter"));
        if (option(one, "csv.null-literal") != null) csv.setNullLiteral(option(one, "csv.null-literal"));
        if (on(one, "csv.allow-comments")) csv.setAllowComments(true);
        CsvRowDataDeserializationSchema schema = csv.build();
        schema.open(null);
        return schema.deserialize(body);
    }

    static byte[] writeCsv(RowType type, JsonNode one, RowData row) throws Exception {
        CsvRowDataSerializationSchema.Builder csv = new CsvRowDataSerializationSchema.Builder(type);
        if (option(one, "csv.field-delimiter") != null) csv.setFieldDelimiter(option(one, "csv.field-delimiter").charAt(0));
        if (option(one, "csv.quote-character") != null) csv.setQuoteCharacter(option(one, "csv.quote-character").charAt(0));
        if (on(one, "csv.disable-quote-character")) csv.disableQuoteCharacter();
        if (option(one, "csv.escape-character") != null) csv.setEscapeCharacter(option(one, "csv.escape-character").charAt(0));
        if (option(one, "csv.array-element-delimiter") != null) csv.setArrayElementDelimiter(option(one, "csv.array-element-delimiter"));
        if (option(one, "csv.null-literal") != null) csv.setNullLiteral(option(one, "csv.null-literal"));
        csv.setWriteBigDecimalInScientificNotation(
                !"false".equals(option(one, "csv.write-bigdecimal-in-scientific-notation")));
        CsvRowDataSerializationSchema schema = csv.build();
        schema.open(null);
        return schema.serialize(row);
    }

    static RowData raw(RowType type, JsonNode one, byte[] body) throws Exception {
        RawFormatDeserializationSchema schema = new RawFormatDeserializationSchema(
                type.getTypeAt(0), InternalTypeInfo.of(type), charset(one), bigEndian(one));
        schema.open(null);
        return schema.deserialize(body);
    }

    static byte[] writeRaw(RowType type, JsonNode one, RowData row) throws Exception {
        RawFormatSerializationSchema schema =
                new RawFormatSerializationSchema(type.getTypeAt(0), charset(one), bigEndian(one));
        schema.open(null);
        return schema.serialize(row);
    }

    static String charset(JsonNode one) {
        String charset = option(one, "raw.charset");
        return charset == null ? "UTF-8" : charset;
    }

    static boolean bigEndian(JsonNode one) {
        return !"little-endian".equalsIgnoreCase(option(one, "raw.endianness"));
    }

    static JsonNode show(Object value, LogicalType type) {
        if (value == null) {
            return JSON.nullNode();
        } else if (type instanceof RowType) {
            ArrayNode all = JSON.createArrayNode();
            List<RowType.RowField> fields = ((RowType) type).getFields();
            for (int i = 0; i < fields.size(); i++) {
                LogicalType field = fields.get(i).getType();
                all.add(show(RowData.createFieldGetter(field, i).getFieldOrNull((RowData) value), field));
            }
            return all;
        } else if (type instanceof ArrayType) {
            ArrayNode all = JSON.createArrayNode();
            LogicalType element = ((ArrayType) type).getElementType();
            ArrayData array = (ArrayData) value;
            for (int i = 0; i < array.size(); i++) {
                all.add(show(ArrayData.createElementGetter(element).getElementOrNull(array, i), element));
            }
            return all;
        } else if (type instanceof DateType) {
            return JSON.getNodeFactory().textNode(LocalDate.ofEpochDay((Integer) value).toString());
        } else if (type instanceof TimeType) {
            LocalTime time = LocalTime.ofNanoOfDay((Integer) value * 1_000_000L);
            return JSON.getNodeFactory().textNode(java.time.format.DateTimeFormatter.ISO_LOCAL_TIME.format(time));
        } else if (value instanceof TimestampData) {
            String text = ((TimestampData) value).toLocalDateTime().format(TIMESTAMP);
            return JSON.getNodeFactory().textNode(type instanceof LocalZonedTimestampType ? text + "Z" : text);
        } else if (value instanceof DecimalData) {
            return JSON.getNodeFactory().textNode(plain(((DecimalData) value).toBigDecimal()));
        } else if (value instanceof Float || value instanceof Double) {
            return JSON.getNodeFactory().textNode(value.toString());
        } else if (value instanceof Number || value instanceof Boolean || value instanceof byte[]) {
            return JSON.valueToTree(value);
        }
        return JSON.getNodeFactory().textNode(value.toString());
    }

    static final java.time.format.DateTimeFormatter TIMESTAMP = new java.time.format.DateTimeFormatterBuilder()
            .appendPattern("uuuu-MM-dd HH:mm:ss")
            .appendFraction(java.time.temporal.ChronoField.NANO_OF_SECOND, 0, 9, true)
            .toFormatter();

    static String plain(BigDecimal value) {
        return (value.signum() == 0 ? BigDecimal.ZERO : value.stripTrailingZeros()).toPlainString();
    }
}
