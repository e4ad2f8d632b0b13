import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Properties;

/** Writes the changes of the database `shop` to files: arguments are the server's port, a folder, a file for offsets. */
public class ChangeEngine {
    public static void main(String[] arguments) {
        Path folder = Path.of(arguments[1]);
        Properties settings = new Properties();
        settings.setProperty("name", "engine");
        settings.setProperty("connector.class", "io.debezium.connector.postgresql.PostgresConnector");
        settings.setProperty("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore");
        settings.setProperty("offset.storage.file.filename", arguments[2]);
        settings.setProperty("offset.flush.interval.ms", "2000");
        settings.setProperty("database.hostname", "127.0.0.1");
        settings.setProperty("database.port", arguments[0]);
        settings.setProperty("database.user", "postgres");
        settings.setProperty("database.password", "none");
        settings.setProperty("database.dbname", "shop");
        settings.setProperty("topic.prefix", "shop");
        settings.setProperty("schema.include.list", "public");
        settings.setProperty("plugin.name", "pgoutput");
        settings.setProperty("publication.autocreate.mode", "all_tables");
        settings.setProperty("decimal.handling.mode", "string");
        settings.setProperty("converter.schemas.enable", "false");
        settings.setProperty("skipped.operations", "none");
        settings.setProperty("snapshot.mode", "initial");
        settings.setProperty("poll.interval.ms", "50");

        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
                .using(settings)
                .notifying((List<ChangeEvent<String, String>> events,
                        DebeziumEngine.RecordCommitter<ChangeEvent<String, String>> committer) -> {
                    try {
                        StringBuilder lines = new StringBuilder();
                        for (ChangeEvent<String, String> event : events) {
                            lines.append("{\"topic\":\"").append(event.destination()).append("\",\"key\":")
                                    .append(event.key()).append(",\"value\":").append(event.value()).append("}\n");
                        }
                        // A file is complete when it has its name; only then are its events marked as done.
                        String name = System.currentTimeMillis() + "-" + System.nanoTime() + ".jsonl";
                        Path half = folder.resolve("." + name);
                        Files.writeString(half, lines);
                        Files.move(half, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
                        for (ChangeEvent<String, String> event : events) {
                            committer.markProcessed(event);
                        }
                        committer.markBatchFinished();
                    } catch (java.io.IOException error) {
                        throw new java.io.UncheckedIOException(error);
                    }
                })
                .build();
        engine.run();
    }
}
