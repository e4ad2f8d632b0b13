import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.IOException;
import java.io.StringReader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Properties;

/** Writes the changes of the database `shop` to files: arguments are the server's port, a folder, a file for offsets. */
public class ChangeEngine {
    public static void main(String[] arguments) throws IOException {
        Path folder = Path.of(arguments[1]);
        Properties settings = new Properties();
        settings.load(new StringReader("""
                name=engine
                connector.class=io.debezium.connector.postgresql.PostgresConnector
                offset.storage=org.apache.kafka.connect.storage.FileOffsetBackingStore
                offset.storage.file.filename=%s
                offset.flush.interval.ms=2000
                database.hostname=127.0.0.1
                database.port=%s
                database.user=postgres
                database.password=none
                database.dbname=shop
                topic.prefix=shop
                schema.include.list=public
                plugin.name=pgoutput
                publication.autocreate.mode=all_tables
                decimal.handling.mode=string
                converter.schemas.enable=false
                skipped.operations=none
                snapshot.mode=initial
                signal.data.collection=public.signals
                poll.interval.ms=50
                """.formatted(arguments[2], arguments[0])));

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
                    } catch (IOException error) {
                        throw new UncheckedIOException(error);
                    }
                })
                .build();
        engine.run();
    }
}
