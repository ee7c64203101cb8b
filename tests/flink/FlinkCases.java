import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.api.common.functions.util.ListCollector;
import org.apache.flink.api.common.serialization.BulkWriter;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.table.factories.BulkWriterFormatFactory;
import org.apache.flink.core.fs.FSDataOutputStream;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.catalog.CatalogTable;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.catalog.ObjectIdentifier;
import org.apache.flink.table.catalog.ResolvedCatalogTable;
import org.apache.flink.table.catalog.ResolvedSchema;
import org.apache.flink.table.connector.format.DecodingFormat;
import org.apache.flink.table.connector.format.EncodingFormat;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericMapData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.factories.DeserializationFormatFactory;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.factories.SerializationFormatFactory;
import org.apache.flink.table.runtime.connector.sink.SinkRuntimeProviderContext;
import org.apache.flink.table.runtime.connector.source.ScanRuntimeProviderContext;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.DateType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LocalZonedTimestampType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.MultisetType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.TimeType;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;
import org.apache.flink.table.types.utils.TypeConversions;

/** Reads cases of formats from standard input, one JSON object a line, and answers what Flink makes of each. */
public class FlinkCases {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }

    /** What each mode adds to the options; `tree` is the decoder of JSON that was the only one before 1.20. */
    static Map<String, Map<String, String>> modes(String format) {
        Map<String, Map<String, String>> modes = new LinkedHashMap<>();
        modes.put("default", Map.of());
        if (!format.equals("raw")) {
            modes.put("ignore", Map.of(format + ".ignore-parse-errors", "true"));
        }
        if (format.equals("json")) {
            modes.put("missing", Map.of("json.fail-on-missing-field", "true"));
            for (String mode : List.copyOf(modes.keySet())) {
                Map<String, String> tree = new HashMap<>(modes.get(mode));
                tree.put("json.decode.json-parser.enabled", "false");
                modes.put("tree " + mode, tree);
            }
        }
        return modes;
    }

    static ObjectNode answer(JsonNode one) {
        ObjectNode answer = JSON.createObjectNode();
        String format = one.get("format").asText();
        RowData row = null;
        if (one.has("nulls")) {
            row = new GenericRowData(one.get("schema").size());
        } else if (one.has("entries")) {
            row = GenericRowData.of(map(one.get("entries")));
        } else {
            for (Map.Entry<String, Map<String, String>> mode : modes(format).entrySet()) {
                boolean tree = mode.getKey().startsWith("tree");
                if (tree && answer.get("default").asText().equals("refused")) {
                    break;
                }
                RowData read = read(one, mode.getKey(), mode.getValue(), answer);
                row = row == null && !tree ? read : row;
            }
        }
        if (row != null) {
            write(one, row, answer);
        }
        return answer;
    }

    /** Answers the first row; `refused` means that Flink would not make the table. */
    static RowData read(JsonNode one, String mode, Map<String, String> more, ObjectNode answer) {
        DeserializationSchema<RowData> schema;
        RowType type;
        try {
            type = type(one);
            schema = new Table(one, more).decoder();
            schema.open(null);
        } catch (Throwable error) {
            answer.put(mode, "refused");
            return null;
        }
        List<RowData> rows = new ArrayList<>();
        try {
            schema.deserialize(body(one), new ListCollector<>(rows));
        } catch (Throwable error) {
            answer.put(mode, "error");
            return null;
        }
        if (rows.isEmpty()) {
            answer.put(mode, "no row");
            return null;
        }
        ArrayNode shown = answer.putArray(mode);
        rows.forEach(row -> shown.add(show(row, type)));
        return rows.get(0);
    }

    static void write(JsonNode one, RowData row, ObjectNode answer) {
        if (one.get("format").asText().equals("csv")) {
            answer.put("file", writeFile(one, row));
        }
        SerializationSchema<RowData> schema;
        try {
            schema = new Table(one, Map.of()).encoder();
            schema.open(null);
        } catch (Throwable error) {
            answer.put("written", "refused");
            return;
        }
        try {
            byte[] written = schema.serialize(row);
            if (written == null) {
                answer.put("written", "nothing");
            } else if (one.get("format").asText().equals("raw")) {
                answer.put("written", HexFormat.of().formatHex(written));
            } else {
                answer.put("written", new String(written, StandardCharsets.UTF_8));
            }
        } catch (Throwable error) {
            answer.put("written", "error");
        }
    }

    /** What Flink's sink of files writes, which has a writer of CSV of its own. */
    static String writeFile(JsonNode one, RowData row) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try {
            BulkWriter<RowData> writer = new Table(one, Map.of()).fileEncoder().create(new Memory(bytes));
            writer.addElement(row);
            writer.finish();
        } catch (Throwable error) {
            return "error";
        }
        return bytes.toString(StandardCharsets.UTF_8);
    }

    /** A file that is only written, from its beginning to its end. */
    static final class Memory extends FSDataOutputStream {
        final ByteArrayOutputStream bytes;

        Memory(ByteArrayOutputStream bytes) {
            this.bytes = bytes;
        }

        @Override
        public long getPos() {
            return bytes.size();
        }

        @Override
        public void write(int one) {
            bytes.write(one);
        }

        @Override
        public void flush() {}

        @Override
        public void sync() {}

        @Override
        public void close() {}
    }

    static byte[] body(JsonNode one) {
        return one.has("hex")
                ? HexFormat.of().parseHex(one.get("hex").asText().replace(" ", ""))
                : one.get("body").asText().getBytes(StandardCharsets.UTF_8);
    }

    static MapData map(JsonNode entries) {
        Map<StringData, Integer> map = new LinkedHashMap<>();
        for (JsonNode entry : entries) {
            StringData key = entry.get(0).isNull() ? null : StringData.fromString(entry.get(0).asText());
            map.put(key, entry.get(1).asInt());
        }
        return new GenericMapData(map);
    }

    static RowType type(JsonNode one) {
        StringBuilder columns = new StringBuilder();
        for (JsonNode column : one.get("schema")) {
            columns.append(columns.length() == 0 ? "" : ", ").append(column.asText());
        }
        return (RowType) LogicalTypeParser.parse("ROW<" + columns + ">", FlinkCases.class.getClassLoader());
    }

    /** Finds, checks and makes the format as any connector of Flink does for a table of this schema and options. */
    static final class Table implements DynamicTableFactory {
        final FactoryUtil.TableFactoryHelper helper;
        final Map<String, String> more;
        final DataType row;

        Table(JsonNode one, Map<String, String> more) {
            this.more = more;
            Map<String, String> options = new HashMap<>(Map.of("connector", "cases", "format", one.get("format").asText()));
            one.path("options").fields().forEachRemaining(option -> options.put(option.getKey(), option.getValue().asText()));
            options.putAll(more);
            List<Column> columns = new ArrayList<>();
            for (RowType.RowField field : type(one).getFields()) {
                columns.add(Column.physical(field.getName(), TypeConversions.fromLogicalToDataType(field.getType())));
            }
            ResolvedSchema schema = ResolvedSchema.of(columns);
            row = schema.toPhysicalRowDataType();
            CatalogTable table = CatalogTable.newBuilder()
                    .schema(Schema.newBuilder().fromResolvedSchema(schema).build())
                    .options(options)
                    .build();
            ClassLoader loader = FlinkCases.class.getClassLoader();
            helper = FactoryUtil.createTableFactoryHelper(this, new FactoryUtil.DefaultDynamicTableContext(
                    ObjectIdentifier.of("c", "d", "t"), new ResolvedCatalogTable(table, schema), Map.of(),
                    new Configuration(), loader, false));
        }

        DeserializationSchema<RowData> decoder() {
            DecodingFormat<DeserializationSchema<RowData>> format =
                    helper.discoverDecodingFormat(DeserializationFormatFactory.class, FactoryUtil.FORMAT);
            // Which Flink forgets to declare: it works only with connectors that do not check their options.
            if (!"false".equals(more.get("json.decode.json-parser.enabled"))) {
                helper.validate();
            }
            return format.createRuntimeDecoder(ScanRuntimeProviderContext.INSTANCE, row);
        }

        SerializationSchema<RowData> encoder() {
            EncodingFormat<SerializationSchema<RowData>> format =
                    helper.discoverEncodingFormat(SerializationFormatFactory.class, FactoryUtil.FORMAT);
            helper.validate();
            return format.createRuntimeEncoder(new SinkRuntimeProviderContext(false), row);
        }

        BulkWriter.Factory<RowData> fileEncoder() {
            EncodingFormat<BulkWriter.Factory<RowData>> format =
                    helper.discoverEncodingFormat(BulkWriterFormatFactory.class, FactoryUtil.FORMAT);
            return format.createRuntimeEncoder(new SinkRuntimeProviderContext(false), row);
        }

        @Override
        public String factoryIdentifier() {
            return "cases";
        }

        @Override
        public Set<ConfigOption<?>> requiredOptions() {
            return Set.of(FactoryUtil.FORMAT);
        }

        @Override
        public Set<ConfigOption<?>> optionalOptions() {
            return Set.of();
        }
    }

    static JsonNode show(Object value, LogicalType type) {
        if (value == null) {
            return JSON.nullNode();
        } else if (type instanceof RowType) {
            ArrayNode all = JSON.createArrayNode();
            List<RowType.RowField> fields = ((RowType) type).getFields();
            for (int i = 0; i < fields.size(); i++) {
                LogicalType field = fields.get(i).getType().copy(true);
                all.add(show(RowData.createFieldGetter(field, i).getFieldOrNull((RowData) value), field));
            }
            return all;
        } else if (type instanceof ArrayType) {
            ArrayNode all = JSON.createArrayNode();
            LogicalType element = ((ArrayType) type).getElementType().copy(true);
            ArrayData array = (ArrayData) value;
            for (int i = 0; i < array.size(); i++) {
                all.add(show(ArrayData.createElementGetter(element).getElementOrNull(array, i), element));
            }
            return all;
        } else if (type instanceof MapType) {
            return entries((MapData) value, ((MapType) type).getKeyType(), ((MapType) type).getValueType());
        } else if (type instanceof MultisetType) {
            return entries((MapData) value, ((MultisetType) type).getElementType(), new IntType());
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

    static JsonNode entries(MapData map, LogicalType key, LogicalType value) {
        ObjectNode all = JSON.createObjectNode();
        ArrayData.ElementGetter keys = ArrayData.createElementGetter(key);
        ArrayData.ElementGetter values = ArrayData.createElementGetter(value.copy(true));
        for (int i = 0; i < map.size(); i++) {
            JsonNode shown = show(values.getElementOrNull(map.valueArray(), i), value);
            all.set(String.valueOf(keys.getElementOrNull(map.keyArray(), i)), shown);
        }
        return all;
    }

    static final java.time.format.DateTimeFormatter TIMESTAMP = new java.time.format.DateTimeFormatterBuilder()
            .appendPattern("uuuu-MM-dd HH:mm:ss")
            .appendFraction(java.time.temporal.ChronoField.NANO_OF_SECOND, 0, 9, true)
            .toFormatter();

    static String plain(BigDecimal value) {
        return (value.signum() == 0 ? BigDecimal.ZERO : value.stripTrailingZeros()).toPlainString();
    }
}
